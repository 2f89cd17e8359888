/** Where nothing is shown, nothing is fetched. */
export const HIDDEN = '[data-lethe-block],[data-lethe-mask],.rr-block'

/** A rule of the page, and what its addresses are relative to. */
export interface PlacedRule {
  rule: CSSRule
  base: string
}

/** Every rule of the page's own style sheets, with those in other rules and in imported sheets. */
export function* rulesOfPage(): Generator<PlacedRule> {
  const sheets = [...document.styleSheets, ...(document.adoptedStyleSheets ?? [])]
  for (const sheet of sheets) yield* rulesOf(sheet)
}

function* rulesOf(sheet: CSSStyleSheet): Generator<PlacedRule> {
  const base = sheet.href ?? document.baseURI
  const waiting = [rulesIn(sheet)]
  for (let list = waiting.pop(); list; list = waiting.pop()) {
    for (const rule of list) {
      yield { rule, base }
      if (rule instanceof CSSImportRule) {
        if (rule.styleSheet) yield* rulesOf(rule.styleSheet)
      } else if ('cssRules' in rule) waiting.push(rulesIn(rule as CSSGroupingRule))
    }
  }
}

/** A sheet of another origin may not be read. */
function rulesIn(of: { cssRules: CSSRuleList }): CSSRule[] {
  try {
    return [...of.cssRules]
  } catch {
    return []
  }
}
