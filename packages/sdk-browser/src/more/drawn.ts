import { addressesIn, maskedAddress } from '../masking/css.ts'
import { type Platform, pause } from '../platform.ts'
import { elapsed, SLICE_MILLISECONDS } from '../recording/page-natives.ts'
import { observe } from './observe.ts'
import { HIDDEN, rulesOfPage } from './rules.ts'

const LOADED_MAXIMUM = 2_000

const PSEUDO_ELEMENT = /(^|[\s>+~,(])?:(?::[\w-]+(?:\([^)]*\))?|(?:before|after)(?![\w-]))/g
/** Temporary states: their images are recorded too, because the replay can show the state again. */
const TEMPORARY = /:(?:hover|active|focus(?:-visible|-within)?)(?![\w-])/g

/** An image in a style sheet or style attribute. */
export interface Drawn {
  /** Always the same object for the same `url` and `urls`. */
  of: object
  url: string
  /** Its addresses in the recording: resolved, and as written. */
  urls: string[]
  /** Those that have just turned out to stand for another image too. */
  shared: string[]
}

/**
 * Finds the images that the browser has loaded for style sheets and style attributes, if an
 * unmasked element uses them.
 */
export function watchDrawn(platform: Platform, changed: () => void) {
  const loaded = new Set<string>()
  const known = new Map<string, object>()
  /** From an address in the recording to the original URL; null if there are several. */
  const named = new Map<string, string | null>()
  const end = observe('resource', true, ({ name, initiatorType }: PerformanceResourceTiming) => {
    if (initiatorType !== 'css' || loaded.size >= LOADED_MAXIMUM || loaded.has(name)) return
    loaded.add(name)
    changed()
  })
  const drawnAs = ({ url, written }: Address, level: number): Drawn => {
    const names = [...new Set([url, written].map((each) => maskedAddress(each, level)))]
    const isOther = (each: string) => (named.get(each) ?? url) !== url
    const shared = names.filter((each) => named.get(each) && isOther(each))
    const urls = names.filter((each) => named.get(each) !== null && !isOther(each))
    for (const each of urls) named.set(each, url)
    for (const each of shared) named.set(each, null)
    const key = [url, ...urls].join(' ')
    const of = known.get(key) ?? {}
    known.set(key, of)
    return { of, url, urls, shared }
  }
  return {
    end,
    /** Call it for each snapshot: addresses recorded before no longer count. */
    forget: () => named.clear(),
    async *seen(level: number): AsyncGenerator<Drawn> {
      if (!loaded.size) return
      let until = elapsed() + SLICE_MILLISECONDS
      for (const { css, base, isShown } of placesOfPage()) {
        if (elapsed() > until) {
          await pause(platform, 0)
          until = elapsed() + SLICE_MILLISECONDS
        }
        if (!css.includes('url(')) continue
        const addresses = resolvedIn(css, base).filter(({ url }) => loaded.has(url))
        if (addresses.length && isShown()) for (const one of addresses) yield drawnAs(one, level)
      }
    },
  }
}

interface Address {
  url: string
  written: string
}

function resolvedIn(css: string, base: string): Address[] {
  return addressesIn(css).flatMap((written) => {
    try {
      return [{ url: new URL(written, base).href, written }]
    } catch {
      return []
    }
  })
}

interface Place {
  css: string
  base: string
  isShown(): boolean
}

function* placesOfPage(): Generator<Place> {
  for (const element of document.querySelectorAll<HTMLElement>('[style*="url("]')) {
    const css = element.getAttribute('style') ?? ''
    yield { css, base: document.baseURI, isShown: () => !element.closest(HIDDEN) }
  }
  for (const { rule, base } of rulesOfPage()) {
    if (!(rule instanceof CSSStyleRule)) continue
    yield { css: rule.style.cssText, base, isShown: () => isAnyShown(rule) }
  }
}

/** Whether the rule applies to an element that the recording shows. */
function isAnyShown(rule: CSSStyleRule) {
  const elements = selectorOf(rule)
    .replace(TEMPORARY, '')
    .replace(PSEUDO_ELEMENT, (_, before) => (before === undefined ? '' : `${before}*`))
  const hidden = HIDDEN.split(',').map((each) => `${each},${each} *`)
  try {
    return document.querySelector(`:is(${elements || '*'}):not(${hidden})`) !== null
  } catch {
    return false
  }
}

/** The rule's selector, combined with those of the rules it is nested in. */
function selectorOf({ selectorText, parentRule }: CSSStyleRule): string {
  if (!(parentRule instanceof CSSStyleRule)) return selectorText
  const outer = `:is(${selectorOf(parentRule)})`
  return selectorText.includes('&')
    ? selectorText.replaceAll('&', outer)
    : `${outer} ${selectorText}`
}
