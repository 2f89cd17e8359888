/** How much of the page is hidden before anything leaves the browser. See docs of `Options.masking`. */
export type MaskingPreset = 'open' | 'balanced' | 'strict'

/** What the visitor agreed to. While `pending` or `denied` nothing is recorded, stored or sent. */
export type Consent = 'granted' | 'pending' | 'denied'

/** What may be recorded beside the page. Each is off unless it is `true`. */
export interface Signals {
  /** Uncaught errors and rejections. */
  errors?: boolean
  /** What `console.error` and `console.warn` print: only the text, no objects. */
  console?: boolean
  /** Requests that fail or are slow: method, masked URL, status and time; no bodies, no headers. */
  requests?: boolean
  /** A request that takes longer than this is slow. 3,000 by default. */
  slowMilliseconds?: number
  /** Several quick clicks on one place (rage), and clicks on a control that change nothing (dead). */
  clicks?: boolean
  /** LCP, CLS, INP, FCP and TTFB. */
  vitals?: boolean
}

/** A string is the start of a path or of a whole URL; a `RegExp` is tested against the URL. */
export type Pages = readonly (string | RegExp)[]

export interface Start {
  /**
   * `call`: nothing is recorded before `lethe.start()`. `error`: nothing is sent before the first
   * uncaught error on a page, or `lethe.start()`; then about the last minute is sent too.
   */
  on?: 'call' | 'error'
  /** Only these pages are recorded. */
  only?: Pages
  /** These pages are never recorded, whatever the other options say. */
  never?: Pages
  /** A session shorter than this is not sent. */
  minimumSeconds?: number
}

export interface Options {
  /**
   * The address of the Lethe server, such as `https://lethe.example.com`. Optional with the script
   * tag: the default is where the script came from.
   */
  host?: string
  /**
   * `open` hides what is typed; `balanced` (the default) also labels, placeholders and titles,
   * select options, editable text, `data-*`, the query and hash of every URL, and text that looks
   * like an email address or a card number; `strict` hides all text and media. The project's own
   * setting can only make it stricter.
   */
  masking?: MaskingPreset
  /** `granted` by default. An earlier `optOut()` of this browser wins over it. */
  consent?: Consent
  /**
   * Errors, failed requests and how fast the page was, masked as the page is: `true` for all of
   * it. `false` by default; the code for it is then not loaded.
   */
  signals?: boolean | Signals
  /**
   * Images and fonts become part of the recording, so that a replay shows them when the page's
   * server no longer has them: up to 250 KB each and 3 MB a page, fetched without
   * credentials, none under `strict` and none of elements that are masked or blocked. The project
   * can turn it off. `false` by default.
   */
  assets?: boolean
  /** Where and when recording starts: by default on every page and at once. */
  start?: Start
  /** The share of sessions to record, 0 to 1. The project's own rate can only lower it. */
  sampleRate?: number
  /**
   * A domain such as `example.com`, whose subdomains all become one browser, with a cookie. Without
   * it each origin is a separate browser, and an erasure reaches only those that were identified.
   */
  cookieDomain?: string
  /** Masks UUIDs in URLs like other secrets. `true` by default. */
  maskUuids?: boolean
  /**
   * Masks what is personal in the page's own URLs, such as `/of/jane`. It gets each URL as it stands
   * in the page. The preset masks what it returns as well; if it throws or returns no text, the
   * whole URL is masked.
   */
  maskUrl?: (url: string) => string
  /** Takes the browser's Global Privacy Control signal as a refusal. `false` by default. */
  respectGlobalPrivacyControl?: boolean
}

export interface IdentifyOptions {
  /** A JWT, or an HMAC-SHA256 of the user id in hex, from your backend, if the project requires it. */
  hash?: string
}

export interface OptOutOptions {
  /**
   * Also erases what this browser has recorded, if the project allows it. It is retried until it is
   * done, as long as the page is open.
   */
  erase?: boolean
}

/** No call ever throws into the page, and on a server (no `document`) every call does nothing. */
export interface Lethe {
  readonly version: string
  /** Starts recording. Call it once: a second call does nothing until `stop()`. */
  init(publicKey: string, options?: Options): void
  /**
   * Links this browser to a person, including what it recorded before. If it was linked to another
   * person, a new browser and session start with this call. A number is converted to text. An id
   * that stands for nobody (`guest`, `0`) is ignored with a warning.
   */
  identify(userId: string | number, options?: IdentifyOptions): void
  /** Call it when the user signs out: starts a new browser and session, linked to nobody. */
  reset(): void
  /**
   * Starts recording now: with `start: 'call'`, before an error, or after `stop()`. It overrides the
   * sample rates, except a project's of 0.
   */
  start(): void
  /** Stops recording on this page; what was recorded is still sent. `start` or `init` starts again. */
  stop(): void
  /** This browser's id, for logs and support; undefined until the server has assigned one. */
  browserId(): string | undefined
  /** The visitor agrees: this browser remembers it, and recording starts. */
  optIn(): void
  /** The visitor refuses: this browser remembers it; ids and unsent data are deleted. */
  optOut(options?: OptOutOptions): void
}
