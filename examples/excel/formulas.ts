/**
 * Formulas as a workbook stores them: without "=", in English, and with the prefixes of functions that came after 2007.
 *
 * Everything here is pure. Formulas are not parsed: a misspelled name or a missing argument shows up in Excel only. What
 * would make Excel call the whole file damaged is refused as far as it shows without a parser.
 *
 * @since 0.1.0
 */
import * as Ranges from "./ranges.ts"

/**
 * Why a formula cannot be written.
 *
 * @category models
 * @since 0.1.0
 */
export type Problem = "Empty" | "TooLong" | "Unbalanced" | "Incomplete" | "Semicolon" | "Program" | "Array" | "Lambda"

/** What Excel allows. */
const MAX_LENGTH = 8192

/**
 * Functions that Excel writes as `_xlfn.NAME`, since it did not know them in 2007; it shows `#NAME?` for them without
 * the prefix.
 */
const LATER_FUNCTIONS = new Set(
  `
  ACOT ACOTH AGGREGATE ANCHORARRAY ARABIC ARRAYTOTEXT BASE BETA.DIST BETA.INV BINOM.DIST
  BINOM.DIST.RANGE BINOM.INV BITAND BITLSHIFT BITOR BITRSHIFT BITXOR BYCOL BYROW CEILING.MATH
  CEILING.PRECISE CHISQ.DIST CHISQ.DIST.RT CHISQ.INV CHISQ.INV.RT CHISQ.TEST CHOOSECOLS CHOOSEROWS
  COMBINA CONCAT CONFIDENCE.NORM CONFIDENCE.T COT COTH COVARIANCE.P COVARIANCE.S CSC CSCH DAYS DECIMAL
  DROP ERF.PRECISE ERFC.PRECISE EXPAND EXPON.DIST F.DIST F.DIST.RT F.INV F.INV.RT F.TEST FILTER
  FILTERXML FLOOR.MATH FLOOR.PRECISE FORECAST.ETS FORECAST.ETS.CONFINT FORECAST.ETS.SEASONALITY
  FORECAST.ETS.STAT FORECAST.LINEAR FORMULATEXT GAMMA GAMMA.DIST GAMMA.INV GAMMALN.PRECISE GAUSS
  HSTACK HYPGEOM.DIST IFNA IFS IMAGE IMCOSH IMCOT IMCSC IMCSCH IMSEC IMSECH IMSINH IMTAN ISFORMULA
  ISOMITTED ISOWEEKNUM LOGNORM.DIST LOGNORM.INV MAKEARRAY MAP MAXIFS MINIFS MODE.MULT MODE.SNGL MUNIT
  NEGBINOM.DIST NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV NUMBERVALUE PDURATION PERCENTILE.EXC
  PERCENTILE.INC PERCENTRANK.EXC PERCENTRANK.INC PERMUTATIONA PHI POISSON.DIST QUARTILE.EXC
  QUARTILE.INC QUERYSTRING RANDARRAY RANK.AVG RANK.EQ REDUCE RRI SCAN SEC SECH SEQUENCE SHEET SHEETS
  SINGLE SKEW.P SORT SORTBY STDEV.P STDEV.S SWITCH T.DIST T.DIST.2T T.DIST.RT T.INV T.INV.2T T.TEST
  TAKE TEXTAFTER TEXTBEFORE TEXTJOIN TEXTSPLIT TOCOL TOROW UNICHAR UNICODE UNIQUE VALUETOTEXT VAR.P
  VAR.S VSTACK WEBSERVICE WEIBULL.DIST WRAPCOLS WRAPROWS XLOOKUP XMATCH XOR Z.TEST`.trim().split(/\s+/)
)

/** Those that have a second prefix. */
const WORKSHEET_FUNCTIONS = new Set(["FILTER", "SORT"])

/** Their parameters have prefixes too, so a name alone does not make them valid. */
const LAMBDA_FUNCTIONS = /^(?:LET|LAMBDA)\($/i

const CLOSES: Readonly<Record<string, string>> = { "(": ")", "{": "}", "[": "]" }

/** Returns where a quoted text ends that starts at `start`; a doubled quote does not end it. */
const quoteEnd = (formula: string, start: number): number | undefined => {
  const quote = formula.charAt(start)
  for (let at = formula.indexOf(quote, start + 1); at >= 0; at = formula.indexOf(quote, at + 2)) {
    if (formula.charAt(at + 1) !== quote) return at
  }
  return undefined
}

/** Looks at quotes, brackets and separators. */
const scan = (formula: string): Problem | undefined => {
  const open: Array<string> = []
  for (let at = 0; at < formula.length; at++) {
    const character = formula.charAt(at)
    const inside = open.at(-1)
    if (inside === "[" && character === "'") {
      // Within brackets, in the name of a column, "'" makes the next character an ordinary one.
      at++
    } else if (inside !== "[" && (character === "\"" || character === "'")) {
      const end = quoteEnd(formula, at)
      if (end === undefined) return "Unbalanced"
      at = end
    } else if (character === "[" || (inside !== "[" && CLOSES[character] !== undefined)) {
      open.push(character)
    } else if (character === "]" || (inside !== "[" && (character === ")" || character === "}"))) {
      if (inside === undefined || CLOSES[inside] !== character) return "Unbalanced"
      open.pop()
    } else if (character === ";" && inside !== "{" && inside !== "[") {
      return "Semicolon"
    } else if (character === "|" && inside !== "[") {
      // "cmd|'/C calc'!A0" starts a program; nothing else needs this character.
      return "Program"
    }
  }
  return open.length === 0 ? undefined : "Unbalanced"
}

/**
 * Returns a formula the way a workbook stores it, or what is wrong with it.
 *
 * **Details**
 *
 * A leading "=" is optional. Functions that came after 2007 get their prefix unless they have it.
 *
 * @category encoding
 * @since 0.1.0
 */
export const toStored = (
  text: string
): { readonly formula: string } | { readonly problem: Problem } => {
  const formula = text.replaceAll(/\r\n?/g, "\n").trim().replace(/^=/, "").trim()
  if (formula === "") return { problem: "Empty" }
  if (formula.startsWith("{=")) return { problem: "Array" }
  const problem = scan(formula)
  if (problem !== undefined) return { problem }
  if (/^[*/^&=<>,:)]|[-+*/^&=<>,:]$/.test(formula)) return { problem: "Incomplete" }
  let lambda = false
  const stored = Ranges.mapTokens(formula, (token) => {
    if (LAMBDA_FUNCTIONS.test(token)) lambda = true
    const name = token.endsWith("(") ? token.slice(0, -1).toUpperCase() : ""
    if (!LATER_FUNCTIONS.has(name)) return token
    return `_xlfn.${WORKSHEET_FUNCTIONS.has(name) ? "_xlws." : ""}${name}(`
  })
  if (lambda) return { problem: "Lambda" }
  return stored.length > MAX_LENGTH ? { problem: "TooLong" } : { formula: stored }
}
