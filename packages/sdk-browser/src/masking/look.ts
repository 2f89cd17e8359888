/**
 * Knows which attribute values the page's style sheets select by. Such a value decides how the page
 * looks and is not content: without it the replay would show another theme, or a closed panel.
 */
export interface Look {
  /** Reads the attribute selectors of CSS. */
  learn(css: string): void
  /** Returns the part of a value that the selectors match, or undefined if none matches. */
  shown(name: string, value: string): string | undefined
  /** Whether a selector learned since the last call is for an attribute that was dropped before. */
  takeMissed(): boolean
}

interface Selector {
  operator: string
  operand: string
}

/** `[name]`, `[name="value"]`, `[name^=value i]`; Tailwind's class names contain escaped brackets. */
const ATTRIBUTE_SELECTOR =
  /(?<!\\)\[\s*(?:\*?\|)?([a-z_][\w-]*)\s*(?:([~|^$*]?=)\s*(?:"([^"\\]*)"|'([^'\\]*)'|([\w.-]+))\s*[is]?\s*)?\]/gi

/** Attributes that are never shown, even if a selector names them. */
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
      const shown = matching.length ? combined(value, matching) : undefined
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

/** Builds a value that all these selectors match from their operands: `^=` first, `$=` last. */
function combined(value: string, selectors: Selector[]) {
  const rank = ({ operator }: Selector) => '^|~*$'.indexOf(operator[0] as string)
  if (selectors.some(({ operator }) => operator === '=')) return value
  const words = selectors.filter(({ operand }) => operand).sort((a, b) => rank(a) - rank(b))
  return words.map(({ operand }) => operand).join(' ')
}
