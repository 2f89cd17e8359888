import { IncrementalSource } from '@rrweb/types'
import type { Budget } from './budget.ts'
import { harmlessCss } from './filter-css.ts'
import { isId, isRecord, listOf, text } from './untrusted.ts'

type Data = Record<string, unknown>

/** Returns a harmless style sheet, or part of one. */
export function css(budget: Budget, text: string): string {
  return budget.css(harmlessCss(text))
}

/** Returns a harmless change that a script of the page made to a style sheet. */
export function harmlessStyle(budget: Budget, data: Data): Data | undefined {
  const { source, id, styleId } = data
  const target = { ...(isId(id) && { id }), ...(isId(styleId) && { styleId }) }
  if (source === IncrementalSource.AdoptedStyleSheet) {
    if (!isId(id)) return undefined
    return {
      source,
      id,
      styleIds: Array.isArray(data.styleIds) ? data.styleIds.filter(isId) : [],
      styles: listOf(data.styles, (style) =>
        isId(style.styleId)
          ? { styleId: style.styleId, rules: harmlessRules(budget, style.rules) }
          : undefined,
      ),
    }
  }
  if (source === IncrementalSource.StyleDeclaration) {
    const { set, remove, index } = data
    return {
      source,
      ...target,
      index: indexOf(index) ?? [0],
      ...(isRecord(set) &&
        typeof set.value === 'string' && {
          set: {
            property: text(set.property),
            value: harmlessCss(set.value),
            ...(set.priority === 'important' && { priority: 'important' }),
          },
        }),
      ...(isRecord(remove) && { remove: { property: text(remove.property) } }),
    }
  }
  return {
    source,
    ...target,
    adds: harmlessRules(budget, data.adds),
    removes: listOf(data.removes, ({ index }) => {
      const position = indexOf(index)
      return position === undefined ? undefined : { index: position }
    }),
    ...(typeof data.replace === 'string' && { replace: css(budget, data.replace) }),
    ...(typeof data.replaceSync === 'string' && { replaceSync: css(budget, data.replaceSync) }),
  }
}

function harmlessRules(budget: Budget, rules: unknown): Data[] {
  return listOf(rules, ({ rule, index }) => {
    if (typeof rule !== 'string') return undefined
    const position = indexOf(index)
    return { rule: css(budget, rule), ...(position !== undefined && { index: position }) }
  })
}

/** The position of a rule: a number, or a path of numbers for a nested one. */
function indexOf(index: unknown): number | number[] | undefined {
  if (Array.isArray(index)) return index.every(isId) && index.length > 0 ? index : undefined
  return isId(index) ? index : undefined
}
