/** Elements whose content the recording hides: no assets are fetched for them. */
export const HIDDEN = '[data-lethe-block],[data-lethe-mask],.rr-block'

/** A CSS rule and the base URL for the URLs in it. */
export interface PlacedRule {
  rule: CSSRule
  base: string
}

/** Yields every readable CSS rule of the page, including nested rules and imported style sheets. */
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

/** Returns no rules for a style sheet of another origin: it can't be read. */
function rulesIn(of: { cssRules: CSSRuleList }): CSSRule[] {
  try {
    return [...of.cssRules]
  } catch {
    return []
  }
}
