import type { Look } from '../masking/look.ts'
import { createBudget, LOOKS } from './budget.ts'
import { now } from './clock.ts'

/** Learns by which attributes the page's style sheets select elements. */
export function createSheets(look: Look) {
  const budget = createBudget(LOOKS, now())
  const read = new WeakMap<CSSStyleSheet, number>()
  return {
    /** Reads constructed sheets, which snapshots lack, if their number of rules changed. */
    learn(sheets: readonly CSSStyleSheet[]) {
      for (const sheet of sheets) {
        const rules = sheet.cssRules
        if (read.get(sheet) === rules.length) continue
        read.set(sheet, rules.length)
        look.learn(selectorsOf(rules))
      }
    },
    /**
     * Whether a sheet loaded later selects elements by attributes that were left out, so that a new
     * snapshot is needed. Limited by a budget.
     */
    isLate: () => look.takeMissed() && budget.spend(1, now()),
  }
}

function selectorsOf(rules: CSSRuleList): string {
  let text = ''
  for (let at = 0; at < rules.length; at++) {
    const { selectorText = '', cssRules } = rules[at] as CSSRule & Partial<CSSStyleRule>
    text += `${selectorText}\n${cssRules?.length ? selectorsOf(cssRules) : ''}`
  }
  return text
}
