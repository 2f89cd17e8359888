import type { eventWithTime } from '@rrweb/types'
import { LEVELS } from '../masking/preset.ts'
import { quiet } from '../quiet.ts'
import { listen } from '../recording/page-natives.ts'
import { SENT } from '../recording/tab.ts'
import { watchDrawn } from './drawn.ts'
import { usedFonts } from './fonts.ts'
import type { MoreOptions } from './more.ts'
import { HIDDEN } from './rules.ts'

const ASSET_BYTES_MAXIMUM = 250_000
const PAGE_BYTES_MAXIMUM = 3_000_000
const SETTLE_MILLISECONDS = 500
const SENT_MAXIMUM = 500

const IMAGE = /^image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml|x-icon|vnd\.microsoft\.icon)$/
const FONT = /^(?:font\/|application\/(?:x-)?(?:font|vnd\.ms-fontobject|octet-stream))/

type Options = Pick<MoreOptions, 'platform' | 'sessions' | 'masking' | 'add' | 'idOf'>

/**
 * Records images and fonts as `lethe:asset` events: the bytes as `{ key, data }`, once per tab and
 * session, and after each snapshot where they are used: `{ key, id }` for an image element,
 * `{ key, css, parent }` for a font, `{ key, urls, parent }` for images in style sheets. They are
 * fetched without credentials, so assets that only the visitor may see are not recorded.
 */
export function watchAssets({ platform, sessions, masking, add, idOf }: Options) {
  const loaded = new Map<string, Promise<string | undefined>>()
  const sent = createSent(platform, () => sessions.current()?.sessionId)
  /** The URLs recorded for each object since the last snapshot. */
  let recorded = new WeakMap<object, string>()
  const load = createLoader()
  let isOver = false
  let cancel: (() => void) | undefined

  /** Returns the key of the asset at a URL once its bytes are recorded. */
  const keyOf = async (url: string, type: RegExp) => {
    if (!/^(?:https?|blob):/.test(url)) return undefined
    const known = loaded.get(url) ?? load(url, type).catch(() => undefined)
    loaded.set(url, known)
    const data = await known
    if (!data || isOver || !isWanted()) return undefined
    const key = hashOf(data)
    if (!sent.has(key)) {
      if (!add('lethe:asset', { key, data })) return undefined
      sent.note(key)
    }
    return key
  }
  const record = async (of: object, url: string, type: RegExp, usage: object) => {
    if (recorded.get(of) === url) return
    const before = recorded
    recorded.set(of, url)
    const key = await keyOf(url, type)
    if (key && before === recorded) add('lethe:asset', { key, ...usage })
  }
  const isWanted = () =>
    masking()?.preset !== 'strict' && sessions.current()?.settings.assets !== false
  const collect = async () => {
    if (!isWanted()) return
    const images = [...document.images].filter(({ complete }) => complete)
    for (const image of images) {
      const id = idOf(image)
      if (id > 0 && !image.closest(HIDDEN)) await record(image, image.currentSrc, IMAGE, { id })
    }
    const parent = idOf(document.head)
    if (parent < 1) return
    for (const { rule, url, css } of usedFonts()) await record(rule, url, FONT, { css, parent })
    const level = LEVELS[masking()?.preset ?? 'strict']
    for await (const { of, url, urls, shared } of drawn.seen(level)) {
      // Images that share an address in the recording can't be told apart, so none is shown.
      if (shared.length) add('lethe:asset', { key: '', urls: shared, parent })
      if (urls.length) await record(of, url, IMAGE, { urls, parent })
    }
  }
  const soon = quiet(() => {
    cancel ??= platform.after(SETTLE_MILLISECONDS, () => {
      cancel = undefined
      collect().catch(() => {})
    })
  })
  const drawn = watchDrawn(platform, soon)
  const ends = [
    drawn.end,
    // An element's load event doesn't reach the window.
    listen(document, 'load', soon, { capture: true }),
    listen(window, 'load', soon),
    listen(document.fonts, 'loadingdone', soon),
  ]
  soon()
  return {
    seen({ type }: eventWithTime) {
      if (type !== 2) return
      recorded = new WeakMap()
      drawn.forget()
      soon()
    },
    end() {
      isOver = true
      cancel?.()
      for (const end of ends) end()
    },
  }
}

/** Returns a function that fetches an asset as a data URL, within the limits per asset and page. */
function createLoader() {
  let bytes = 0
  return async (url: string, type: RegExp) => {
    if (bytes >= PAGE_BYTES_MAXIMUM) return undefined
    const response = await fetch(url, { cache: 'force-cache', credentials: 'omit' })
    const blob = response.ok ? await response.blob() : undefined
    if (!blob || blob.size > ASSET_BYTES_MAXIMUM || !type.test(blob.type.split(';')[0] ?? '')) {
      return undefined
    }
    bytes += blob.size
    return dataOf(blob)
  }
}

function createSent(platform: Options['platform'], session: () => string | undefined) {
  let [of, ...keys] = (platform.tab.get(SENT) ?? '').split(' ')
  return {
    has: (key: string) => of === session() && keys.includes(key),
    note(key: string) {
      if (of !== session()) keys = []
      of = session()
      keys = [...keys, key].slice(-SENT_MAXIMUM)
      platform.tab.set(SENT, [of, ...keys].join(' '))
    },
  }
}

const dataOf = (blob: Blob) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = reject
    reader.readAsDataURL(blob)
  })

/** A hash that isn't collision-resistant: a page could only confuse assets in its own recording. */
function hashOf(text: string) {
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    high = Math.imul(high ^ code, 0x9e3779b1)
    low = Math.imul(low ^ code, 0x5f356495)
  }
  return `${(high >>> 0).toString(36)}${(low >>> 0).toString(36)}${text.length.toString(36)}`
}
