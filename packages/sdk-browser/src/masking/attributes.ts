import { maskCss } from './css.ts'
import {
  type Attributes,
  BLOCK,
  CHECKABLE,
  FIELD,
  HIDDEN,
  LINK,
  MEDIA,
  SECRET,
  SVG,
} from './node.ts'
import { maskEmails, maskPatterns, stars } from './text.ts'
import { maskUrl, maskUrls } from './url.ts'

/** How one node is to be masked: its own bits, and what the place it stands in makes of it. */
export interface Rule {
  own: number
  all: number
  /** 0 open, 1 balanced, 2 strict: `data-lethe-mask` makes it 2, `data-lethe-unmask` at most 1. */
  level: number
  /** Under `data-lethe-unmask`, where that counts. */
  shown: boolean
}

const PROSE =
  /^(title|alt|placeholder|label|summary|aria-(label|description|placeholder|roledescription))$/
const URLS = /^(href|src|xlink:href|poster|background|data|rr_src)$/
const SIZES_OF_RECORDER = /^rr_(width|height|scroll(Left|Top)|open_mode|media\w+)$/

/** What a page looks like: everything else on an element is dropped, for it may hold anything. */
const LOOK = new RegExp(
  `^(${[
    'id|class|name|type|for|role|rel|as|media|lang|dir|hidden|open|disabled|readonly|required|multiple',
    'contenteditable|tabindex|width|height|size|sizes|rows|cols|(col|row)?span|border|align|valign',
    'bgcolor|color|face|cell(padding|spacing)|nowrap|start|reversed|wrap|loop|muted|controls|is|slot',
    'part|dialog|popover|inert|loading|shadowrootmode|charset|crossorigin|target|min|max|step',
    'aria-(expanded|hidden|selected|current|pressed|disabled|busy|invalid|orientation|sort|level|modal)',
    'd|points|viewBox|preserveAspectRatio|[cdfr]?[xyr][12]?|transform|transform-origin|pathLength',
    'gradient(Units|Transform)|pattern\\w*Units|patternTransform|clipPathUnits|mask\\w*Units|offset',
    '(fill|stroke|stop|clip|marker|font|text|letter|word|dominant|alignment|baseline|color|flood)-.*',
    'fill|stroke|clip|mask|filter|opacity|overflow|display|visibility|marker\\w*|orient|ref[XY]',
    'in2?|result|mode|operator|k[1-4]|values|tableValues|stdDeviation|slope|intercept|order|radius',
    'xmlns.*|version|vector-effect|(shape|image|text)-rendering|paint-order|spreadMethod|startOffset',
  ].join('|')})$`,
  'i',
)

/** Names without a value by which Vue and Angular tie styles to their components. */
const SCOPE = /^(data-v-|_ng(content|host)-)[\w-]+$/

/** A copy of an element's attributes, or of a change to them, with only what may be seen. */
export function maskAttributes(attributes: Attributes, rule: Rule): Attributes {
  const masked: Attributes = {}
  for (const name in attributes) {
    if (rule.own & BLOCK && !/^(class|rr_(width|height))$/.test(name)) continue
    const value = attributes[name]
    const kept = value === null ? value : maskAttribute(name, value, rule)
    if (kept !== undefined) masked[name] = kept
  }
  return masked
}

function maskAttribute(name: string, value: unknown, rule: Rule): unknown {
  const { level, shown } = rule
  if (name === '_cssText') return level ? maskCss(String(value), level === 2) : value
  if (name === 'value') return maskValue(String(value), rule)
  if (/^on|^srcdoc$|^rr_dataURL$|^nonce$/i.test(name)) return undefined
  if (level === 0) return value
  if (name === 'style') return maskStyle(value, level === 2)
  if (/^(checked|selected)$/.test(name)) return shown ? value : undefined
  if (typeof value !== 'string') return SIZES_OF_RECORDER.test(name) ? value : undefined
  if (PROSE.test(name)) return shown ? maskPatterns(value) : stars(value)
  if (URLS.test(name)) return maskReference(value, rule)
  if (/^(image)?srcset$/.test(name)) return level === 2 ? undefined : maskUrls(value)
  return isLook(name) || (!value && SCOPE.test(name)) ? maskEmails(value) : undefined
}

const looks = new Map<string, boolean>()

/** Pages have few names of attributes and thousands of each. */
function isLook(name: string) {
  let look = looks.get(name)
  if (look === undefined) {
    look = LOOK.test(name) || SIZES_OF_RECORDER.test(name)
    if (looks.size < 1000) looks.set(name, look)
  }
  return look
}

/** A field's value: its length shows, unless it is a secret; what was hidden goes altogether. */
export function maskValue(value: string, { own, level, shown }: Rule) {
  if (own & HIDDEN) return undefined
  if (own & SECRET) return value && '********'
  if (own & FIELD) return shown && !(own & CHECKABLE) ? maskPatterns(value) : stars(value)
  return level ? undefined : value
}

function maskReference(value: string, { own, level }: Rule) {
  if (level === 2 && own & MEDIA) return undefined
  return maskUrl(value, own & LINK ? 'page' : own & SVG ? 'symbol' : 'asset')
}

/** A whole style attribute, or the recorder's list of the properties that changed. */
function maskStyle(value: unknown, strict: boolean): unknown {
  if (typeof value === 'string') return maskCss(value, strict)
  if (Array.isArray(value)) return value.map((each) => maskStyle(each, strict))
  if (typeof value !== 'object' || !value) return value
  return Object.fromEntries(
    Object.entries(value).map(([property, each]) => [property, maskStyle(each, strict)]),
  )
}
