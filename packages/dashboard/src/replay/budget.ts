/*
 * Limits how much of a page is built. A recording may be forged, and the cost of a page grows
 * faster than its size. Real pages stay far below these limits; what exceeds them is left out.
 */
const nodesMaximum = 300_000
const framesMaximum = 100
const rulesMaximum = 100_000
/** Selectors that make the browser match the whole page again after each change. */
const relationsMaximum = 500
const effectsMaximum = 200

export interface Budget {
  /** Whether one more node may be built. */
  node(): boolean
  /** Whether one more frame, or one more SVG filter, may be built. */
  element(tag: string): boolean
  css(text: string): string
  /** Something was left out. */
  isExceeded(): boolean
  /** Called at the start of a new page. */
  reset(): void
}

export function createBudget(): Budget {
  let used = { nodes: 0, frames: 0, effects: 0, rules: 0, relations: 0 }
  let isExceeded = false
  const within = (isWithin: boolean) => {
    if (!isWithin) isExceeded = true
    return isWithin
  }
  return {
    node: () => within(++used.nodes <= nodesMaximum),
    element(tag) {
      if (tag === 'iframe') return within(++used.frames <= framesMaximum)
      return tag !== 'filter' || within(++used.effects <= effectsMaximum)
    },
    css(text) {
      used.rules += occurrences(text, '{')
      if (!within(used.rules <= rulesMaximum)) return ''
      if (!/:has\(/i.test(text)) return text
      used.relations += occurrences(text.toLowerCase(), ':has(')
      const isFew = within(used.relations <= relationsMaximum)
      // An unknown selector invalidates its rule.
      return isFew ? text : text.replace(/:has\(/gi, ':-lethe-left-out(')
    },
    isExceeded: () => isExceeded,
    reset() {
      used = { nodes: 0, frames: 0, effects: 0, rules: 0, relations: 0 }
    },
  }
}

function occurrences(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count++
  return count
}
