import type { Consent, IdentifyOptions, Lethe, Options, OptOutOptions } from './api.ts'
import { type Client, createClient } from './client.ts'
import { CONSENT, decideConsent, rememberedConsent } from './consent.ts'
import type { LoadMore, LoadRecorder } from './follow.ts'
import { browserPlatform, type Platform } from './platform.ts'
import { quiet, warn } from './quiet.ts'
import { whyNobody } from './user-id.ts'
import { version } from './version.ts'

/** Calls that wait for init or for consent; older ones go. */
const WAITING_MAXIMUM = 20

/** What a page has asked for. */
export interface Asked {
  platform: Platform
  key: string
  host: string
  options: Options
  /** By `start()` and `stop()`. */
  isStarted?: boolean
  /** Gives back what was put into the page for `start.only` and `start.never`. */
  unguard?: () => void
}

/**
 * Makes the object a page speaks to. `home` is where the script came from. Nothing of the
 * browser is touched before `init`.
 */
export function createLethe(loadRecorder: LoadRecorder, loadMore: LoadMore, home?: string): Lethe {
  let page: Asked | undefined
  let client: Client | undefined
  let waiting: ((client: Client) => void)[] = []
  let consent: Consent = 'pending'

  const begin = () => {
    if (!page || page.isStarted === false || client || consent !== 'granted') return
    const masking = page.options.masking ?? 'balanced'
    client = createClient({ ...page.options, ...page, page, masking, loadRecorder, loadMore })
    for (const call of waiting) call(client)
    waiting = []
  }
  /** Begins, or where a setting says when, once that says so. */
  const start = () => {
    if (!page || consent !== 'granted') return
    const asked = page
    if (!asked.options.start && !asked.options.cookieDomain) return whenShown(begin)
    loadMore()
      .then(({ guard }) => guard(asked, () => whenShown(begin), end))
      .catch(() => warn('recorder not loaded'))
  }
  const withClient = (call: (client: Client) => void) => {
    if (client) call(client)
    else if (consent !== 'denied') waiting = [...waiting, call].slice(-WAITING_MAXIMUM)
  }
  const init = (key: string, options: Options = {}) => {
    const host = (options.host ?? home ?? '').replace(/\/+$/, '')
    if (page && page.isStarted !== false) return
    if (!/^pk_\w+$/.test(key) || !/^https?:\/\//.test(host)) {
      return warn('init: no pk_ key or host')
    }
    const platform = browserPlatform()
    page = { platform, key, host, options }
    consent = consentFor(options, platform)
    if (consent === 'denied') waiting = []
    start()
  }
  const identify = (given: string | number, { hash }: IdentifyOptions = {}) => {
    const userId = typeof given === 'number' ? `${given}` : given
    const why = whyNobody(userId)
    if (why) warn(`identify: ${why}`)
    else withClient((each) => each.identify(userId, hash))
  }
  const end = (how: 'stop' | 'forget' = 'stop') => {
    client?.[how]()
    client = undefined
  }
  const decide = (decided: Consent) => {
    consent = decided
    const { shared } = page?.platform ?? browserPlatform()
    shared.set(CONSENT, decided)
  }
  return {
    version,
    init: safely(init),
    identify: safely(identify),
    reset: safely(() => withClient((each) => each.reset())),
    start: safely(() => {
      if (page) page.isStarted = true
      start()
      client?.start()
    }),
    stop: safely(() => {
      if (page) page.isStarted = false
      page?.unguard?.()
      end()
    }),
    browserId: () => client?.current()?.browserId,
    optIn: safely(() => {
      decide('granted')
      start()
    }),
    optOut: safely((how?: OptOutOptions) => {
      waiting = []
      if (how?.erase) client?.erase()
      end('forget')
      decide('denied')
    }),
  }
}

function consentFor(options: Options, platform: Platform) {
  const { globalPrivacyControl } = navigator as { globalPrivacyControl?: boolean }
  return decideConsent(
    options.consent,
    rememberedConsent(platform.shared),
    options.respectGlobalPrivacyControl && globalPrivacyControl,
  )
}

/** A call that cannot hurt the page, and does nothing where there is none. */
function safely<A extends unknown[]>(call: (...input: A) => void) {
  return quiet((...input: A) => {
    if (typeof document !== 'undefined') call(...input)
  })
}

/** A page that is rendered ahead may never be seen: it begins when it is. */
function whenShown(run: () => void) {
  if ((document as { prerendering?: boolean }).prerendering) {
    document.addEventListener('prerenderingchange', run, { once: true })
  } else run()
}
