import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import { type Answer, backoff } from './answer.ts'
import { type Identity, isLive, type SharedIdentity } from './identity.ts'
import type { Platform } from './platform.ts'
import type { Server } from './request.ts'
import { version } from './version.ts'

const URL_CHARACTERS_MAXIMUM = 2048

export interface SessionsOptions {
  platform: Platform
  server: Server
  shared: SharedIdentity
  /** Whether this page is done with: nothing is asked or kept any more. */
  halted(): boolean
  /** The server wants nothing from this page. */
  halt(): void
  /** There is no session to record into, and for now none is to be had. */
  waiting(): void
}

export type Sessions = ReturnType<typeof createSessions>

/** The browser and the session this page records into, and how they follow one another. */
export function createSessions(options: SessionsOptions) {
  const { platform, shared } = options
  let identity: Identity | undefined
  /** Apart from the other tabs, whose browser belongs to somebody by now. */
  let detached = false
  let retiredAt = Number.NEGATIVE_INFINITY

  /** Takes over what other tabs have written: a newer session of this browser, their activity. */
  const sync = () => {
    const stored = detached ? undefined : shared.read()
    if (!stored || (identity && stored.browserId !== identity.browserId)) return
    if (!identity || stored.startedAt > identity.startedAt) identity = stored
    identity.activeAt = Math.max(identity.activeAt, stored.activeAt)
    identity.linked ||= stored.linked
  }
  const save = () => {
    if (!identity || detached || options.halted()) return
    sync()
    // Where another tab went on as another browser, or somebody emptied the store, that stands.
    if (shared.read()?.browserId === identity.browserId) shared.write(identity)
  }
  const begunElsewhere = (browserId?: string, left?: string) =>
    detached ? undefined : begunBy(shared.read(), platform.now(), browserId, left)
  /** Starts a session; `left` is the browser that is not to be taken up again. */
  const start = (browserId?: string, left?: string) =>
    platform.exclusively(shared.name, () => startAlone(browserId, left))

  const startAlone = async (browserId?: string, left?: string): Promise<Identity | undefined> => {
    const before = identity
    identity = begunElsewhere(browserId, left)
    if (identity) return identity
    const answer = await askUntilAnswered(options, browserId)
    if (!answer) return undefined
    if (answer.next === 'new_browser') {
      retiredAt = platform.now()
      if (shared.read()?.browserId === browserId) shared.remove()
      return startAlone(undefined, browserId)
    }
    // Where tabs cannot wait for each other, the first to be written down is the one of both.
    identity = begunElsewhere(browserId, left) ?? begin(platform, answer, before)
    if (!detached) shared.write(identity)
    return identity
  }
  return {
    current: () => identity,
    save,
    /** When the server last said that a browser of this page is retired. */
    retiredAt: () => retiredAt,
    touch() {
      if (identity) identity.activeAt = platform.now()
    },
    /** The session to record into: the one that goes on, or a new one of the same browser. */
    async ensure() {
      sync()
      if (identity && isLive(identity, platform.now())) return identity
      return start(identity?.browserId)
    },
    isOver() {
      sync()
      return identity !== undefined && !isLive(identity, platform.now())
    },
    /**
     * Goes on as another browser. After a retirement another tab may have done so before: its
     * browser serves this tab too, unless somebody has been identified in it.
     */
    async rotate(retired: boolean) {
      const left = identity?.browserId
      const stored = shared.read()
      const moved = retired && stored && stored.browserId !== left
      identity = undefined
      if (retired) retiredAt = platform.now()
      detached = moved === true && stored.linked
      if (moved && !detached && isLive(stored, platform.now())) identity = stored
      else if (!detached) shared.remove()
      return identity ?? start(undefined, left)
    },
    linked() {
      if (identity) identity.linked = true
      save()
    },
  }
}

/** Asks for a session until there is an answer to act on; nothing once the page is done with. */
async function askUntilAnswered(options: SessionsOptions, browserId: string | undefined) {
  const { platform, server, halted, halt, waiting } = options
  const url = bare(platform.pageUrl()).slice(0, URL_CHARACTERS_MAXIMUM)
  for (let failures = 1; ; failures++) {
    const answer = await server.post(
      'start',
      JSON.stringify({ browserId, url, sdkVersion: version }),
    )
    if (halted()) return undefined
    if (answer.next === 'new_browser' && browserId) return answer
    if (answer.next === 'continue' && answer.status < 400) return answer
    if (answer.next !== 'retry') {
      halt()
      return undefined
    }
    waiting()
    const wait = backoff(failures, answer.retryAfterSeconds, platform.random())
    await new Promise<void>((resolve) => platform.after(wait, resolve))
    if (halted()) return undefined
  }
}

/** A URL without query, hash and whatever in its path could be an address or a card. */
function bare(url: string) {
  return url.replace(/[?#].*/s, '').replace(/[^/]*(@|%40|\d{12})[^/]*/gi, '*')
}

/** A session another tab has begun: of this browser, or of any but the one that was left. */
function begunBy(stored: Identity | undefined, now: number, browserId?: string, left?: string) {
  const isFit = stored && stored.browserId === (browserId ?? stored.browserId)
  return isFit && stored.browserId !== left && isLive(stored, now) ? stored : undefined
}

function begin(platform: Platform, { body }: Answer, before: Identity | undefined): Identity {
  const settings = body.settings as RecordingSettings
  const now = platform.now()
  const browserId = String(body.browserId)
  return {
    browserId,
    sessionId: String(body.sessionId),
    startedAt: now,
    activeAt: now,
    sampled: platform.random() < settings.sampleRate,
    linked: before?.browserId === browserId && before.linked,
    settings,
  }
}
