/**
 * What the selectors of a page's style sheets ask of attributes. A value that a selector names is
 * look and no content: without it the replay would show another theme, or a closed panel.
 */
export interface Look {
  /** Reads the attribute selectors of CSS. */
  learn(css: string): void
  /** As much of an attribute's value as the selectors tell apart; nothing where none matches it. */
  shown(name: string, value: string): string | undefined
  /** Whether something was learned since the last call that an attribute was dropped for before. */
  takeMissed(): boolean
}

interface Selector {
  operator: string
  operand: string
}

/** `[name]`, `[name="value"]`, `[name^=value i]`; a bracket escaped by Tailwind is part of a class. */
const ATTRIBUTE_SELECTOR =
  /(?<!\\)\[\s*(?:\*?\|)?([a-z_][\w-]*)\s*(?:([~|^$*]?=)\s*(?:"([^"\\]*)"|'([^'\\]*)'|([\w.-]+))\s*[is]?\s*)?\]/gi

/** Attributes that hold content whatever a selector says of them. */
const NEVER = /^(?:on|value$|checked$|selected$|srcdoc$|nonce$)/

const NAMES_MAXIMUM = 1_000
const SELECTORS_MAXIMUM = 200

export function createLook(): Look {
  const known = new Map<string, Selector[]>()
  const dropped = new Set<string>()
  let missed = false

  return {
    learn(css) {
      for (const [, name = '', operator = '', ...operands] of css.matchAll(ATTRIBUTE_SELECTOR)) {
        const key = name.toLowerCase()
        const operand = operands.slice(0, 3).find((each) => each !== undefined) ?? ''
        const selectors = known.get(key) ?? []
        const isKnown = selectors.some((a) => a.operator === operator && a.operand === operand)
        if (isKnown || NEVER.test(key) || selectors.length >= SELECTORS_MAXIMUM) continue
        if (known.size >= NAMES_MAXIMUM && !known.has(key)) continue
        selectors.push({ operator, operand })
        known.set(key, selectors)
        missed ||= dropped.has(key)
      }
    },
    shown(name, value) {
      const key = name.toLowerCase()
      const matching = known.get(key)?.filter((each) => matches(value, each)) ?? []
      const shown = matching.length ? together(value, matching) : undefined
      if (shown !== value && dropped.size < NAMES_MAXIMUM) dropped.add(key)
      return shown
    },
    takeMissed() {
      const was = missed
      missed = false
      return was
    },
  }
}

function matches(value: string, { operator, operand }: Selector) {
  const [text, part] = [value.toLowerCase(), operand.toLowerCase()]
  if (!operator) return true
  if (operator === '=') return text === part
  if (operator === '~=') return text.split(/\s+/).includes(part)
  if (operator === '|=') return text === part || text.startsWith(`${part}-`)
  if (!part) return false
  if (operator === '^=') return text.startsWith(part)
  return operator === '$=' ? text.endsWith(part) : text.includes(part)
}

/** A value that all these selectors match, made of their own words: `^=` first and `$=` last. */
function together(value: string, selectors: Selector[]) {
  const rank = ({ operator }: Selector) => '^|~*$'.indexOf(operator[0] as string)
  if (selectors.some(({ operator }) => operator === '=')) return value
  const words = selectors.filter(({ operand }) => operand).sort((a, b) => rank(a) - rank(b))
  return words.map(({ operand }) => operand).join(' ')
}
