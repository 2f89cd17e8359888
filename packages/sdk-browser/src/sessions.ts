import type { Answer } from './answer.ts'
import {
  hashOfUser,
  type Identity,
  isLive,
  isWhole,
  type Mark,
  type SharedIdentity,
} from './identity.ts'
import { type Platform, pause } from './platform.ts'
import type { Server } from './request.ts'
import { version } from './version.ts'

const URL_CHARACTERS_MAXIMUM = 2048
const NEWS_MILLISECONDS = 500

export interface SessionsOptions {
  platform: Platform
  server: Server
  shared: SharedIdentity
  /** What the page asks for; the project's own can only lower it. */
  sampleRate?: number
  maskUrl?: (url: string) => string
  /** Whether this page is done with: nothing is asked or kept any more. */
  halted(): boolean
  /** The server wants nothing from this page. */
  halt(): void
  /** There is no session to record into, and for now none is to be had. */
  waiting(): void
}

/** The time this tab records as one browser. What is done in it is told apart from the next. */
export interface Era {
  id: string
  /** Whom the application named in it on this page. */
  userId?: string
  /** The same, as all tabs keep it. */
  user?: string | undefined
  /** Nothing until the server has given ids. */
  identity?: Identity
  /** Whether this tab has begun it, and not followed another one. */
  isMine: boolean
  /** Whether it was written down for the other tabs. */
  isMarked: boolean
  /** When the server said that its browser is retired. */
  retiredAt?: number
}

export type Sessions = ReturnType<typeof createSessions>

/** The browser and the session this page records into, and how they follow one another. */
export function createSessions(options: SessionsOptions) {
  const { platform, shared } = options
  const stored = shared.read()
  let era: Era = stored ? eraOf(stored) : newEra(platform, false)

  const save = () => {
    if (options.halted()) return
    const now = shared.read()
    if (now) join(era, now)
    // Where another tab went on as another browser, or somebody emptied the store, that stands.
    if (now?.id === era.id) shared.write(markOf(era))
  }
  /** Becomes another browser at once, and so do all tabs. */
  const leave = () => {
    era.isMarked = true
    era = newEra(platform, true)
    if (!options.halted()) shared.write(markOf(era))
  }
  /** Whether other tabs have become another browser meanwhile; then this one has followed them. */
  const moved = () => {
    const news = shared.news()
    if (!news || join(era, news)) return false
    era.isMarked = true
    era = eraOf(news)
    return true
  }
  const retire = (left: Era): undefined => {
    left.retiredAt = platform.now()
    if (left === era && !moved()) leave()
  }
  const goesOn = ({ identity }: Era) => identity && isLive(identity, platform.now())
  const startAlone = async (of: Era): Promise<Identity | undefined> => {
    // What the tab that began it has written down may still be on its way here.
    if (!of.isMine && !of.identity) await pause(platform, NEWS_MILLISECONDS)
    const before = shared.read()
    if (before) join(of, before)
    if (goesOn(of)) return of.identity
    const answer = await ask(options, of.identity?.browserId)
    if (!answer) return undefined
    if (answer.next === 'new_browser') return retire(of)
    // Where tabs cannot wait for each other, the first to be written down is the one of both.
    const other = shared.read()
    const isJoined = other && join(of, other)
    if (goesOn(of)) return of.identity
    of.identity = begin(options, answer, of)
    if (of === era && (!other || isJoined || !of.isMarked)) shared.write(markOf(era))
    of.isMarked = true
    return of.identity
  }
  return {
    era: () => era,
    current: () => era.identity,
    save,
    leave,
    moved,
    retire,
    touch() {
      if (era.identity) era.identity.activeAt = platform.now()
    },
    /** The session to record into; nothing where the page is done with, or the era is over. */
    async ensure(of: Era) {
      if (of === era && moved()) return undefined
      if (goesOn(of)) return of.identity
      return platform.exclusively(shared.name, () => startAlone(of))
    },
    isOver: () => goesOn(era) === false,
    /** Keeps whom the application names. Another one than before makes this another browser. */
    name(userId: string): 'known' | 'new' | 'another' {
      const isAnother = era.user && era.user !== hashOfUser(era.id, userId)
      if (isAnother) leave()
      const isKnown = era.user && era.identity?.linked
      Object.assign(era, { userId, user: hashOfUser(era.id, userId) })
      if (era.isMarked) save()
      return isAnother ? 'another' : isKnown ? 'known' : 'new'
    },
    linked(of: Era) {
      if (of.identity) of.identity.linked = true
      if (of === era) save()
    },
  }
}

const markOf = ({ identity, id, user }: Era): Mark => ({ ...identity, id, user })

function newEra({ random }: Platform, isMarked: boolean): Era {
  return { id: `${random()}`.slice(2), isMine: true, isMarked }
}

function eraOf(stored: Mark): Era {
  const era: Era = { ...stored, isMine: false, isMarked: true }
  if (isWhole(stored)) era.identity = stored
  return era
}

/** Takes over what other tabs have written. False where it is of another browser than this era. */
function join(era: Era, stored: Mark): boolean {
  if (stored.id !== era.id) {
    // A tab that was opened at the same time, and its ids came first: they serve this tab too.
    if (era.isMarked || !isWhole(stored)) return false
    const user = era.userId && hashOfUser(stored.id, era.userId)
    if (user && stored.user && user !== stored.user) return false
    Object.assign(era, { id: stored.id, user, isMarked: true })
  }
  era.user ??= stored.user
  if (!isWhole(stored)) return true
  const { identity } = era
  if (!identity || stored.startedAt > identity.startedAt) era.identity = { ...stored }
  else identity.activeAt = Math.max(identity.activeAt, stored.activeAt)
  if (era.identity && identity?.browserId === stored.browserId) {
    era.identity.linked ||= identity.linked || stored.linked
  }
  return true
}

/** Asks for a session; nothing where the server wants none of this page. */
async function ask(options: SessionsOptions, browserId: string | undefined) {
  const { platform, maskUrl = String } = options
  let url = '*'
  try {
    url = bare(maskUrl(platform.pageUrl())).slice(0, URL_CHARACTERS_MAXIMUM)
  } catch {}
  // As a browser that is left already, what is recorded is kept aside for the next one.
  const waiting = browserId ? options.waiting : undefined
  const answer = await options.server.ask(
    'start',
    { browserId, url, sdkVersion: version, pending: true },
    waiting,
  )
  const { next, status = 0 } = answer ?? {}
  if ((next === 'new_browser' && browserId) || (next === 'continue' && status < 400)) return answer
  if (answer) options.halt()
  return undefined
}

/** A URL without query, hash and whatever in its path could be an address, a card or a secret. */
function bare(url: string) {
  return url.replace(/[?#].*/s, '').replace(/[^/]*(@|%40|;|\d{12}|[\w-]{32})[^/]*/g, '*')
}

function begin(
  { platform, sampleRate = 1 }: SessionsOptions,
  { body }: Answer,
  { id, user, identity }: Era,
) {
  const given = body as unknown as Pick<Identity, 'browserId' | 'sessionId' | 'settings'>
  const now = platform.now()
  return {
    ...given,
    id,
    user,
    startedAt: now,
    activeAt: now,
    sampled: platform.random() < Math.min(given.settings.sampleRate, sampleRate),
    linked: Boolean(identity?.linked),
  }
}
