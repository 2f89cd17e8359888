import { rulesOfPage } from './rules.ts'

interface UsedFont {
  rule: CSSFontFaceRule
  url: string
  /** The rule without its source. */
  css: string
}

/** Returns the fonts from readable style sheets that the page has loaded. */
export function usedFonts(): UsedFont[] {
  const used = new Set<string>()
  for (const face of document.fonts) if (face.status === 'loaded') used.add(nameOf(face))
  const fonts: UsedFont[] = []
  if (!used.size) return fonts
  for (const { rule, base } of rulesOfPage()) {
    if (!(rule instanceof CSSFontFaceRule)) continue
    const of = (name: string) => rule.style.getPropertyValue(name)
    const [family, weight, style] = ['font-family', 'font-weight', 'font-style'].map(of)
    const unicodeRange = of('unicode-range')
    const [, source] = /url\(\s*["']?([^"')]+)/.exec(of('src')) ?? []
    if (!source || !used.has(nameOf({ family, weight, style, unicodeRange }))) continue
    const css = [...rule.style]
      .filter((name) => name !== 'src')
      .map((name) => `${name}:${of(name)}`)
    fonts.push({ rule, url: new URL(source, base).href, css: css.join(';') })
  }
  return fonts
}

type Described = { [name in 'family' | 'weight' | 'style' | 'unicodeRange']?: string | undefined }

/** A comparable name: the CSSOM omits default values, a `FontFace` includes them. */
const nameOf = ({ family, weight, style, unicodeRange }: Described) =>
  [
    family?.replace(/["']/g, ''),
    (weight || 'normal').replace('400', 'normal').replace('700', 'bold'),
    style || 'normal',
    (unicodeRange || 'U+0-10FFFF').replace(/\s/g, '').toUpperCase(),
  ].join()
