/** How much of the page is hidden before anything leaves the browser. See docs of `Options.masking`. */
export type MaskingPreset = 'open' | 'balanced' | 'strict'

/** What the visitor agreed to. While `pending` or `denied` nothing is recorded, stored or sent. */
export type Consent = 'granted' | 'pending' | 'denied'

export interface Options {
  /**
   * Where the Lethe server answers, such as `https://lethe.example.com`. With the script tag it
   * may be left out: it is then where the script came from.
   */
  host?: string
  /**
   * `open` hides what is typed; `balanced` (the default) also labels, placeholders and titles,
   * select options, editable text, `data-*`, the query and hash of every URL, and text that looks
   * like an e-mail address or a card number; `strict` hides all text and media. The project's own
   * setting can only tighten it.
   */
  masking?: MaskingPreset
  /** `granted` by default. An earlier `optOut()` of this browser wins over it. */
  consent?: Consent
  /** Takes the browser's Global Privacy Control signal as a refusal. `false` by default. */
  respectGlobalPrivacyControl?: boolean
}

export interface IdentifyOptions {
  /** HMAC-SHA256 of the user id in hex, made by your backend, where the project asks for it. */
  hash?: string
}

/** No call ever throws into the page, and on a server (no `document`) every call does nothing. */
export interface Lethe {
  readonly version: string
  /** Starts recording. Once is enough: a second call changes nothing until `stop()`. */
  init(publicKey: string, options?: Options): void
  /**
   * Says who is using the page. What this session recorded before belongs to the person too. With
   * another id than before, a new browser and a new session begin.
   */
  identify(userId: string, options?: IdentifyOptions): void
  /** Somebody signed out: a new browser and a new session begin, tied to nobody. */
  reset(): void
  /** Ends recording on this page; what was recorded is still sent. `init` starts again. */
  stop(): void
  /** The visitor agrees: remembered in this browser, and recording starts. */
  optIn(): void
  /** The visitor refuses: remembered in this browser; ids and whatever is unsent are deleted. */
  optOut(): void
}
