import { BOX_STYLE } from '../recording/box.ts'
import { shortened } from '../recording/large.ts'
import { maskCss } from './css.ts'
import type { Look } from './look.ts'
import {
  type Attributes,
  BLOCK,
  BUTTON,
  CHECKABLE,
  CHOICE,
  CUSTOM,
  FIELD,
  HIDDEN,
  LINK,
  MEDIA,
  NUMBER,
  SECRET,
  SVG,
  TEXTLESS,
} from './node.ts'
import { maskEmails, maskPatterns, stars } from './text.ts'
import { maskTokens, maskUrl, maskUrls } from './url.ts'

/** How to mask a node: from its own bits and those of its ancestors. */
export interface Rule {
  own: number
  all: number
  /** 0 open, 1 balanced, 2 strict: `data-lethe-mask` makes it 2, `data-lethe-unmask` at most 1. */
  level: number
  /** Unmasked by `data-lethe-unmask`, on itself or an ancestor. */
  shown: boolean
}

const PROSE =
  /^(title|alt|placeholder|label|summary|aria-(label|description|placeholder|roledescription))$/
const URLS = /^(href|src|xlink:href|poster|background|data|rr_src)$/
const SIZES_OF_RECORDER = /^rr_(width|height|scroll(Left|Top)|open_mode|media\w+)$/

const list = (...names: string[]) => new RegExp(`^(${names.join('|')})$`, 'i')

/**
 * Attributes that decide how a page looks. All others are dropped, because they may hold content.
 * The same name can hold content on another kind of element, such as `name` on a custom element.
 */
const LOOK = list(
  'id|class|role|lang|dir|hidden|open|disabled|tabindex|slot|part|is|popover|inert|contenteditable',
  'aria-(expanded|hidden|selected|current|pressed|disabled|busy|invalid|orientation|sort|level|modal)',
)
const HTML_LOOK = list(
  'name|type|for|rel|as|media|readonly|required|multiple|width|height|size|sizes|rows|cols',
  '(col|row)?span|border|align|valign|bgcolor|color|face|cell(padding|spacing)|nowrap|start|reversed',
  'wrap|loop|muted|controls|dialog|loading|shadowrootmode|charset|crossorigin|target|min|max|step|version',
)
const SVG_LOOK = list(
  'type|media|width|height|min|max|color|target|d|points|viewBox|preserveAspectRatio',
  '[cdfr]?[xyr][12]?|transform|transform-origin|pathLength',
  'gradient(Units|Transform)|pattern\\w*Units|patternTransform|clipPathUnits|mask\\w*Units|offset',
  '(fill|stroke|stop|clip|marker|font|text|letter|word|dominant|alignment|baseline|color|flood)-.*',
  'fill|stroke|clip|mask|filter|opacity|overflow|display|visibility|marker\\w*|orient|ref[XY]',
  'in2?|result|mode|operator|k[1-4]|values|tableValues|stdDeviation|slope|intercept|order|radius',
  'xmlns.*|version|vector-effect|(shape|image|text)-rendering|paint-order|spreadMethod|startOffset',
)

/** Names without a value by which Vue and Angular tie styles to their components. */
const SCOPE = /^(data-v-|_ng(content|host)-)[\w-]+$/

/** Attributes that say whether an option made of other elements is chosen. */
const CHOSEN =
  /^(aria-(checked|selected|current)|data-(state|checked|selected|active|highlighted))$/

/** Returns a masked copy of an element's attributes, or of a change to them. */
export function maskAttributes(attributes: Attributes, rule: Rule, look: Look): Attributes {
  const masked: Attributes = {}
  for (const name of Object.keys(attributes)) {
    const value = shortened(name, attributes[name])
    if (rule.own & BLOCK && !isOfBox(name, value)) continue
    const kept = value === null ? value : maskAttribute(name, value, rule, look)
    if (kept !== undefined) masked[name] = kept
  }
  // The replay draws a pattern over the field, so that a masked value isn't taken for a real one.
  const isFalse = rule.own & CHECKABLE ? rule.level && !rule.shown : true
  if (rule.own & FIELD && rule.own & TEXTLESS && isFalse) masked['data-lethe-masked'] = ''
  return masked
}

/** Whether an attribute of a blocked element is kept: only its size and class are. */
const isOfBox = (name: string, value: unknown) =>
  /^(class|rr_(width|height))$/.test(name) || (name === 'style' && BOX_STYLE.test(String(value)))

function maskAttribute(name: string, value: unknown, rule: Rule, look: Look): unknown {
  const { own, level, shown } = rule
  const kind = kindOf(name)
  if (kind & STYLES)
    return name === 'style' ? maskStyle(value, level) : maskCss(String(value), level)
  if (kind & VALUE) return maskValue(String(value), rule)
  if (kind & NEVER) return name === 'data-lethe-popover' ? '' : undefined
  if (kind & ADDRESS && typeof value === 'string') {
    if (URLS.test(name)) return maskReference(value, rule)
    return level === 2 ? undefined : maskUrls(value, level ? maskUrl : maskTokens)
  }
  if (level === 0) return kind & TARGET && value ? maskTokens(String(value)) : value
  if (kind & STATE && (own & CHOICE || !CHOSEN.test(name))) return shown ? value : undefined
  if (typeof value !== 'string') return kind & SIZE ? value : undefined
  if (kind & PROSES) return shown ? maskPatterns(value) : stars(value)
  const isSeen = kind & (SEEN | (own & SVG ? SEEN_SVG : own & CUSTOM ? 0 : SEEN_HTML))
  const seen = isSeen || (!value && SCOPE.test(name)) ? value : look.shown(name, value)
  if (!seen) return seen
  return own & SVG && name !== 'class' ? maskCss(seen, level) : maskEmails(seen)
}

const STYLES = 1
const VALUE = 2
const NEVER = 4
const ADDRESS = 8
/** Whether something is chosen: on any element, or only on one with the CHOICE bit. */
const STATE = 16
const SIZE = 32
const PROSES = 64
const SEEN = 128
const SEEN_HTML = 256
const SEEN_SVG = 512
/** A URL that does not affect how the page looks. */
const TARGET = 1024

const kinds = new Map<string, number>()

/** Cached: a page has thousands of attributes, but few different names. */
function kindOf(name: string) {
  let kind = kinds.get(name)
  if (kind === undefined) {
    kind =
      (/^(?:style|_cssText)$/.test(name) ? STYLES : 0) |
      (name === 'value' ? VALUE : 0) |
      (/^on|^srcdoc$|^rr_dataURL$|^nonce$|^data-lethe-popover$/i.test(name) ? NEVER : 0) |
      (URLS.test(name) || /^(image)?srcset$/.test(name) ? ADDRESS : 0) |
      (/^(checked|selected)$/.test(name) || CHOSEN.test(name) ? STATE : 0) |
      (SIZES_OF_RECORDER.test(name) ? SIZE | SEEN : 0) |
      (PROSE.test(name) ? PROSES : 0) |
      (/^((form)?action|ping|cite|longdesc|manifest)$/.test(name) ? TARGET : 0) |
      (LOOK.test(name) ? SEEN : 0) |
      (HTML_LOOK.test(name) ? SEEN_HTML : 0) |
      (SVG_LOOK.test(name) ? SEEN_SVG : 0)
    if (kinds.size < 1000) kinds.set(name, kind)
  }
  return kind
}

/** Masks a field's value. Its length is kept, except for secrets; hidden fields lose their value. */
export function maskValue(value: string, { own, level, shown }: Rule) {
  if (own & HIDDEN) return undefined
  if (own & SECRET) return value && '********'
  if (own & BUTTON) return level === 2 ? stars(value) : level ? maskPatterns(value) : value
  if (own & NUMBER) {
    const isNumber = level < 2 && /^-?\d{1,9}(?:\.\d+)?$|^-?\.\d+$/.test(value)
    return isNumber ? String(Number(Number(value).toPrecision(6))) : undefined
  }
  if (own & FIELD) return shown && !(own & CHECKABLE) ? maskPatterns(value) : stars(value)
  return level ? undefined : value
}

function maskReference(value: string, { own, level }: Rule) {
  if (level === 2 && own & MEDIA) return undefined
  const kind = own & LINK ? 'page' : own & SVG ? 'symbol' : 'asset'
  return level ? maskUrl(value, kind) : maskTokens(value, kind)
}

/** Masks a whole style attribute, or rrweb's list of changed properties. */
function maskStyle(value: unknown, level: number): unknown {
  if (typeof value === 'string') return maskCss(value, level)
  if (typeof value !== 'object' || !value) return value
  return Object.fromEntries(
    Object.entries(value).map(([property, each]) => [
      property,
      Array.isArray(each)
        ? [maskDeclaration(property, each[0], level), ...each.slice(1)]
        : maskDeclaration(property, each, level),
    ]),
  )
}

/** Masks the value of one property: the property decides whether its strings can be displayed. */
export function maskDeclaration(property: string, value: unknown, level: number): unknown {
  if (typeof value !== 'string') return value
  return maskCss(`${property}:${value}`, level).slice(property.length + 1)
}
