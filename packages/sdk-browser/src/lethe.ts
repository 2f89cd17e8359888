import type { IdentifyOptions, Lethe, Options } from './api.ts'
import { type Client, createClient } from './client.ts'
import { decideConsent, rememberConsent, rememberedConsent } from './consent.ts'
import type { LoadRecorder } from './follow.ts'
import { onPage } from './page.ts'
import { browserPlatform, type Platform } from './platform.ts'
import { quiet } from './quiet.ts'
import { isUserId } from './user-id.ts'
import { version } from './version.ts'

/** Calls that wait for init or for consent; older ones go. */
const WAITING_MAXIMUM = 20

/**
 * Makes the object a page speaks to. `defaultHost` is where the script came from. Nothing of the
 * browser is touched before `init`.
 */
export function createLethe(loadRecorder: LoadRecorder, defaultHost?: string): Lethe {
  let page: { platform: Platform; key: string; host: string; options: Options } | undefined
  let client: Client | undefined
  let waiting: ((client: Client) => void)[] = []
  let isDenied = false

  const begin = () => {
    if (!page || client || isDenied) return
    const { platform, key, host, options } = page
    const masking = options.masking ?? 'balanced'
    client = createClient({ key, host, masking, platform, loadRecorder, onPage })
    for (const call of waiting) call(client)
    waiting = []
  }
  const withClient = (call: (client: Client) => void) => {
    if (client) call(client)
    else if (!isDenied) waiting = [...waiting, call].slice(-WAITING_MAXIMUM)
  }
  const init = (key: string, options: Options = {}) => {
    const host = (options.host ?? defaultHost ?? '').replace(/\/+$/, '')
    if (page) return
    if (!/^pk_\w+$/.test(key)) return warn('init needs a public key, pk_…')
    if (!/^https?:\/\//.test(host)) return warn('init needs the host, https://…')
    const platform = browserPlatform()
    page = { platform, key, host, options }
    const signal = 'globalPrivacyControl' in navigator && navigator.globalPrivacyControl === true
    const refused = options.respectGlobalPrivacyControl === true && signal
    const remembered = rememberedConsent(platform.shared)
    const consent = decideConsent(options.consent ?? 'granted', remembered, refused)
    isDenied = consent === 'denied'
    if (isDenied) waiting = []
    if (consent === 'granted') whenShown(begin)
  }
  const identify = (userId: string, { hash }: IdentifyOptions = {}) => {
    if (isUserId(userId)) withClient((each) => each.identify(userId, hash))
    else warn('identify needs an id of 1 to 200 characters; this call was ignored')
  }
  const end = (how: 'stop' | 'forget') => {
    client?.[how]()
    client = undefined
  }
  const decide = (consent: 'granted' | 'denied') => {
    isDenied = consent === 'denied'
    rememberConsent((page?.platform ?? browserPlatform()).shared, consent)
  }
  return {
    version,
    init: safely(init),
    identify: safely(identify),
    reset: safely(() => withClient((each) => each.reset())),
    stop: safely(() => {
      end('stop')
      page = undefined
    }),
    optIn: safely(() => {
      decide('granted')
      whenShown(begin)
    }),
    optOut: safely(() => {
      waiting = []
      end('forget')
      decide('denied')
    }),
  }
}

/** A call that cannot hurt the page, and does nothing where there is none. */
function safely<A extends unknown[]>(call: (...input: A) => void) {
  const quietly = quiet(call)
  return (...input: A) => {
    if (typeof document !== 'undefined') quietly(...input)
  }
}

/** For whoever builds the page. Never says what was given: it could be personal. */
const warn = (text: string) => console.warn(`lethe: ${text}`)

/** A page that is rendered ahead may never be seen: it begins when it is. */
function whenShown(run: () => void) {
  if ('prerendering' in document && document.prerendering) {
    document.addEventListener('prerenderingchange', run, { once: true })
  } else run()
}
