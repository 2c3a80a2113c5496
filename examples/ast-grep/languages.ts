/**
 * The languages whose code can be searched: those that are built into ast-grep for Node.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type AstGrepError, fail, UnknownLanguage } from "./AstGrepError.ts"

/**
 * Schema for a language as the tool `languages` shows it.
 *
 * @category schemas
 * @since 0.1.0
 */
export const LanguageInfo = Schema.Struct({
  name: Schema.String,
  aliases: Schema.Array(Schema.String).annotate({ description: "Other names, in any case" }),
  endings: Schema.Array(Schema.String).annotate({ description: "Files whose names end so are searched" })
})

/**
 * A language.
 *
 * @category models
 * @since 0.1.0
 */
export interface Language {
  /** As ast-grep calls it. */
  readonly name: string
  /** In lower case. */
  readonly aliases: ReadonlyArray<string>
  /** In lower case, with the dot. */
  readonly endings: ReadonlyArray<string>
  /** Stands for `$` in a pattern while it is parsed, where `$` cannot be in a name: one character. */
  readonly sigil: string
}

/**
 * All languages, by name.
 *
 * @category models
 * @since 0.1.0
 */
export const languages: ReadonlyArray<Language> = [
  { name: "Css", aliases: [], endings: [".css"], sigil: "_" },
  { name: "Html", aliases: ["htm", "xhtml"], endings: [".html", ".htm", ".xhtml"], sigil: "z" },
  {
    name: "JavaScript",
    aliases: ["js", "jsx", "mjs", "cjs", "javascriptreact"],
    endings: [".js", ".jsx", ".mjs", ".cjs"],
    sigil: "$"
  },
  { name: "Tsx", aliases: ["typescriptreact"], endings: [".tsx"], sigil: "$" },
  { name: "TypeScript", aliases: ["ts", "mts", "cts"], endings: [".ts", ".mts", ".cts"], sigil: "$" }
]

/**
 * Finds a language by its name or an alias, in any case.
 *
 * @category constructors
 * @since 0.1.0
 */
export const find = (name: string): Effect.Effect<Language, AstGrepError> => {
  const wanted = name.trim().toLowerCase()
  const language = languages.find(({ aliases, name }) => name.toLowerCase() === wanted || aliases.includes(wanted))
  return language === undefined
    ? fail(new UnknownLanguage({ language: name, known: languages.map(({ name }) => name) }))
    : Effect.succeed(language)
}

/**
 * Whether a file is one of the language, by its name.
 *
 * @category guards
 * @since 0.1.0
 */
export const isFileOf = (language: Language, name: string): boolean => {
  const lower = name.toLowerCase()
  return language.endings.some((ending) => lower.endsWith(ending))
}
