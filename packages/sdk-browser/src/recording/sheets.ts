import type { Look } from '../masking/look.ts'
import { createBudget, LOOKS } from './budget.ts'
import { now } from './clock.ts'

/** Finds out by which attributes the page's style sheets select elements. */
export function createSheets(look: Look) {
  const budget = createBudget(LOOKS, now())
  const read = new WeakMap<CSSStyleSheet, number>()
  return {
    /** Reads constructed sheets, which are no part of a snapshot, once for as many rules. */
    learn(sheets: readonly CSSStyleSheet[]) {
      for (const sheet of sheets) {
        const rules = sheet.cssRules
        if (read.get(sheet) === rules.length) continue
        read.set(sheet, rules.length)
        look.learn(selectorsOf(rules))
      }
    },
    /**
     * Whether a sheet came after elements that it selects by attributes which were left out: only a
     * new snapshot has them. Rarely true, however often sheets come.
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
