import { harmlessCss } from './filter-css.ts'

/*
 * Elements and attributes of a recording that the player may build. Anybody who has read a public
 * key from a page can forge recordings, so what is not known to be harmless is replaced.
 */

export type AttributeValue = string | number | boolean | null

/** Elements removed with their content. An inert one keeps their place among the siblings. */
const removedTags = new Set(
  `applet base basefont bgsound embed fencedframe frame frameset isindex keygen meta object param
   portal script set discard handler listener animatecolor`.split(/\s+/),
)

const knownTags = new Set(
  `a abbr acronym address area article aside audio b bdi bdo big blockquote body br button canvas
   caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em
   fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe
   img input ins kbd label legend li link main map mark marquee menu meter nav nobr noscript ol
   optgroup option output p picture pre progress q rb rp rt rtc ruby s samp search section select
   selectedcontent slot small source span strike strong style sub summary sup table tbody td template
   textarea tfoot th thead time title tr track tt u ul var video wbr
   svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textpath image
   marker mask pattern clippath lineargradient radialgradient stop filter feblend fecolormatrix
   fecomponenttransfer fecomposite feconvolvematrix fediffuselighting fedisplacementmap
   fedistantlight fedropshadow feflood fefunca fefuncb fefuncg fefuncr fegaussianblur feimage
   femerge femergenode femorphology feoffset fepointlight fespecularlighting fespotlight fetile
   feturbulence animate animatetransform animatemotion mpath desc metadata foreignobject switch view
   math mi mn mo ms mspace mtext mrow mfrac msqrt mroot mstyle merror mpadded mphantom msub msup
   msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd semantics annotation
   annotation-xml maction`.split(/\s+/),
)

/** A custom element stays undefined: the page's CSS can select it, but it does nothing. */
const customTag = /^[a-z][a-z0-9]*(?:-[a-z0-9._]*)+$/

const shadowHosts = new Set(
  `article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span`.split(
    /\s+/,
  ),
)

/** Replaces a removed element: it is not rendered, and its content is inert. */
export const placeholderTag = 'template'

export function isShadowHost(tag: string): boolean {
  return shadowHosts.has(tag) || customTag.test(tag)
}

/** Returns the tag to build for an element with this name. */
export function harmlessTag(name: unknown, attributes: unknown): string {
  const tag = typeof name === 'string' ? name.toLowerCase().trim() : ''
  if (removedTags.has(tag)) return placeholderTag
  if (tag === 'link') {
    // A style sheet with recorded text is rebuilt as a style element. Other links only fetch.
    const text = (attributes as Record<string, unknown> | null)?._cssText
    return typeof text === 'string' && text !== '' ? 'link' : placeholderTag
  }
  if (knownTags.has(tag) || customTag.test(tag)) return tag
  return /^[a-z][a-z0-9]*$/.test(tag) ? 'span' : placeholderTag
}

const removedAttributes = new Set(
  `is nonce srcdoc http-equiv autofocus accesskey target download ping integrity crossorigin
   referrerpolicy fetchpriority sandbox allow allowfullscreen csp popovertarget popovertargetaction
   command commandfor invoketarget interestfor imagesrcset srcset action formaction data codebase
   classid archive longdesc manifest profile lowsrc dynsrc base cite icon itemtype content
   attributionsrc browsingtopics credentialless shadowrootmode rr_src __proto__`.split(/\s+/),
)

const frameAttributes = new Set('class id style width height title frameborder'.split(' '))

/** Attributes that are CSS or may contain a url(). */
const cssAttributes = new Set(
  `style _csstext fill stroke filter mask mask-image clip-path marker marker-start marker-mid
   marker-end cursor values from to by rr_width rr_height`.split(/\s+/),
)

const specialAttributes = new Set(
  `rr_dataurl rr_width rr_height rr_scrollleft rr_scrolltop rr_open_mode rr_mediamuted`.split(
    /\s+/,
  ),
)

/** What SVG may animate: no addresses or handlers. */
const animated =
  /^(?:opacity|(?:fill|stroke|stop|flood)(?:-[a-z]+)?|visibility|display|transform|gradienttransform|c?[xy][12]?|r[xy]?|f[xy]|d[xy]?|width|height|offset|points|rotate|viewbox|startoffset|stddeviation|scale)$/

const dataImage =
  /^data:image\/(?:png|jpe?g|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon|svg\+xml)[;,]/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: browsers pass over them in an address
const ignoredInAddresses = /[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202f\ufeff]/g
const scriptAddress = /^(?:javascript|vbscript|livescript|mocha|data:text|data:application)/i

/**
 * Returns the harmless value of an attribute on an element with this tag; undefined to leave it
 * out. `tag` is undefined if a mutation names an unknown element.
 */
export function harmlessAttribute(
  tag: string | undefined,
  name: string,
  value: unknown,
): AttributeValue | undefined {
  const lower = name.toLowerCase()
  const local = lower.slice(lower.lastIndexOf(':') + 1)
  if (/[\s"'<>/=\0]/.test(name) || local.startsWith('on') || lower.startsWith('on'))
    return undefined
  if (removedAttributes.has(local) || tag === placeholderTag) return undefined
  if (lower.startsWith('rr_') && !specialAttributes.has(lower)) return undefined
  if (tag === 'iframe' && !frameAttributes.has(lower) && !lower.startsWith('rr_')) return undefined
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value !== 'string') return undefined
  return harmlessText(tag, lower, local, value)
}

function harmlessText(
  tag: string | undefined,
  lower: string,
  local: string,
  value: string,
): string | undefined {
  const address = value.replace(ignoredInAddresses, '')
  switch (local) {
    case 'href':
      return harmlessReference(tag, address)
    case 'src':
    case 'poster':
    case 'background':
    case 'rr_dataurl':
      return harmlessImage(value)
    case 'usemap':
      return address.startsWith('#') ? value : undefined
    case 'attributename':
      return animated.test(address.toLowerCase()) ? value : undefined
  }
  if (scriptAddress.test(address)) return undefined
  if (!cssAttributes.has(lower)) return value
  return harmlessCss(value, lower === 'style' || lower === '_csstext')
}

/** Links get an address that leads nowhere, so that the page's CSS still matches them as links. */
function harmlessReference(tag: string | undefined, address: string): string | undefined {
  if (address.startsWith('#')) return address
  if (tag === 'image' || tag === 'feimage') return dataImage.test(address) ? address : undefined
  return tag === 'a' || tag === 'area' ? '#' : undefined
}

/** The declarations of a `style` mutation: value, [value, priority], or false to remove. */
export function harmlessDeclarations(style: unknown): Record<string, unknown> {
  const declarations: Record<string, unknown> = {}
  for (const [property, value] of Object.entries(style as Record<string, unknown>)) {
    if (property === '__proto__') continue
    if (value === false) declarations[property] = false
    else if (typeof value === 'string') declarations[property] = harmlessCss(value)
    else if (Array.isArray(value) && typeof value[0] === 'string') {
      declarations[property] = [harmlessCss(value[0]), value[1] === 'important' ? 'important' : '']
    }
  }
  return declarations
}

/** Drops what a browser drops before the check. Inner spaces stay: SVG images need them. */
function harmlessImage(value: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: browsers pass over them in an address
  const address = value.replace(/^[\u0000-\u0020]+|[\t\n\r]/g, '')
  return dataImage.test(address) ? address : undefined
}
