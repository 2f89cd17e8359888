/*
 * Style sheets as written. The CSSOM does not always print a rule completely: for `padding:
 * var(--p); padding-bottom: 9px` it prints empty longhands, and for a sheet of another origin
 * nothing.
 */

/** A longhand without a value, which Chromium prints for a shorthand with `var()`. */
const EMPTY = /:\s*;/

const texts = new Map<string, string>()
const asked = new Set<string>()
let loaded: (sheet: CSSStyleSheet) => void = () => {}

/** Calls `listen` when the text of a sheet has loaded that was recorded incompletely. */
export function onStyleSource(listen: (sheet: CSSStyleSheet) => void): void {
  loaded = listen
}

/** Returns a rule as the CSSOM prints it, or as written if the CSSOM loses a part. */
export function ruleText(sheet: CSSStyleSheet, rule: CSSRule, printed: string): string {
  if (!EMPTY.test(printed)) return printed
  const text = textOf(sheet)
  return (text && rulesOf(sheet, text).get(rule.cssText)) || printed
}

/** All of a sheet that the CSSOM may not read, where its server lets it be fetched. */
export function foreignText(sheet: CSSStyleSheet): string | undefined {
  return textOf(sheet)
}

function textOf(sheet: CSSStyleSheet): string | undefined {
  const { href, ownerNode } = sheet
  if (!href) return ownerNode?.textContent ?? undefined
  if (!asked.has(href)) {
    asked.add(href)
    // The page has just loaded it, so it comes from the browser's cache.
    fetch(href, { cache: 'force-cache', credentials: 'same-origin' })
      .then((response) => (response.ok ? response.text() : ''))
      .then((text) => {
        if (!text) return
        texts.set(href, text)
        loaded(sheet)
      })
      .catch(() => {})
  }
  return texts.get(href)
}

const rules = new WeakMap<CSSStyleSheet, { text: string; byPrinted: Map<string, string> }>()

/** The rules of a source, by how the CSSOM prints them. */
function rulesOf(sheet: CSSStyleSheet, text: string): Map<string, string> {
  const known = rules.get(sheet)
  if (known?.text === text) return known.byPrinted
  const byPrinted = new Map<string, string>()
  const one = new CSSStyleSheet()
  for (const source of topLevelRules(text)) {
    if (!source.includes('var(')) continue
    one.replaceSync(source)
    const [rule, second] = one.cssRules
    if (rule && !second) byPrinted.set(rule.cssText, source)
  }
  rules.set(sheet, { text, byPrinted })
  return byPrinted
}

/** Splits CSS into top-level blocks and statements. */
function* topLevelRules(text: string): Generator<string> {
  let start = 0
  let depth = 0
  const tokens =
    /\/\*[\s\S]*?(?:\*\/|$)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|'(?:[^'\\]|\\[\s\S])*(?:'|$)|[{};]/g
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token === '{') depth++
    else if (token === '}') depth = Math.max(0, depth - 1)
    else if (token !== ';') continue
    if (depth > 0 || token === '{') continue
    yield text.slice(start, index + 1)
    start = index + 1
  }
}
