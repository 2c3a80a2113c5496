/**
 * Shows what a service of Effect can do.
 *
 * A service is a class whose methods stand in the type of its member `Service`. That member comes from `effect`, and so
 * would be left out with all else that does; and what a class has from an expression would be said with its whole text.
 */
import { Converter, ReflectionKind } from "typedoc"

export const load = ({ converter }) => {
  const isExternal = converter.isExternal.bind(converter)
  converter.isExternal = (symbol, ...rest) => symbol.name !== "Service" && isExternal(symbol, ...rest)

  converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const service of project.getReflectionsByKind(ReflectionKind.Class)) {
      if (!service.children?.some(({ name }) => name === "Service")) continue
      // the same again on the class itself, and a constructor that nobody may call
      const useless = service.children.filter(({ flags, kind }) =>
        flags.isStatic || kind === ReflectionKind.Constructor
      )
      for (const child of useless) project.removeReflection(child)
      delete service.extendedTypes
    }
  })

  converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => {
    for (const reflection of project.getReflectionsByKind(ReflectionKind.All)) {
      if (reflection.inheritedFrom?.name.includes("(")) delete reflection.inheritedFrom
      if (reflection.overwrites?.name.includes("(")) delete reflection.overwrites
    }
  }, -1_000)
}
