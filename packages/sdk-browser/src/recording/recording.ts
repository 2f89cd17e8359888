import type { MaskingPreset, Options } from '../api.ts'
import type { LoadMore } from '../follow.ts'
import type { Identity } from '../identity.ts'
import { type Masking, tightest } from '../masking/preset.ts'
import type { Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import type { Era, Sessions } from '../sessions.ts'
import { browserCarrier } from './carrier.ts'
import type { Target } from './chunk.ts'
import { makeLean } from './large.ts'
import { moreOf } from './more-of.ts'
import { createRecorder, type Recorder } from './recorder.ts'
import { createUploader } from './uploader.ts'

export interface RecordingOptions extends Options {
  platform: Platform
  server: Server
  loadMore: LoadMore
  /** What the page asks for. */
  masking: MaskingPreset
  sessions: Sessions
  /** The server has retired this browser, and its waiting chunks were dropped. */
  retired(browserId: string): void
  /** Whether this tab records the same as the others. If not, `aside` has been called. */
  still(): boolean
  /** The server accepts nothing more from this page. */
  halt(): void
}

export { watch } from './watch.ts'

/** `offline`: the session is over, and the next one cannot be started. */
export type PauseReason = 'idle' | 'buffer_full' | 'offline'

export type Recording = ReturnType<typeof createRecording>

/**
 * The part of the SDK that is loaded late: the recorder, which can be turned on and off, and the
 * uploader of its events.
 */
export function createRecording(options: RecordingOptions) {
  let state: 'off' | 'on' | 'ended' | PauseReason = 'off'
  /** The session that has counted this page view. */
  let counted: string | undefined
  const uploader = createUploader(uploadsOf(options), {
    ...options,
    torn: () => again(),
    hopeless: (reason) => (reason === 'snapshot_too_big' && makeLean() ? resume() : ended(reason)),
    full: () => pause('buffer_full'),
  })
  const more = moreOf(options, () => ({ recorder, uploader, again }))
  const recorder = byMasking((wanted) =>
    createRecorder({ ...options, ...uploader, ...more, masking: wanted, ended }),
  )
  const stop = (as: 'off' | 'ended' = 'off') => {
    recorder.stop()
    more.end()
    if (state !== 'ended') state = as
  }
  const ended = (reason?: string) => {
    if (reason) uploader.say('lethe:stopped', { reason })
    stop('ended')
    uploader.flush()
  }
  const resume = () => {
    state = 'on'
    if (!isDone(() => recorder.now()?.resume())) ended('fault')
  }
  const again = () => (state === 'on' || state === 'buffer_full') && resume()
  const finish = () => state === 'on' && recorder.now()?.finish()
  const pause = (reason?: PauseReason) => {
    if (state !== 'on') return
    if (reason === 'idle' || reason === 'offline') finish()
    recorder.now()?.pause()
    state = reason ?? 'off'
    if (reason) uploader.say('lethe:paused', { reason })
  }
  return {
    ...uploader,
    start: more.start,
    state: () => state,
    /** Records into this session from now on, starting with a full snapshot. */
    into(identity: Identity) {
      const { sessionId, sampled, settings } = identity
      const wanted = tightest(options.masking, settings.masking)
      // What the previous page kept was masked with that page's settings.
      const isFit = sampled && (!recorder.now() || recorder.isFor(wanted))
      const target = targetOf(identity)
      uploader.settle(identity.id, isFit ? target : undefined)
      const isGoingOn = isFit && state === 'on' && uploader.session() === sessionId
      if (!isGoingOn) {
        finish()
        pause()
      } else counted = sessionId
      uploader.aim(target, settings.chunkBytesMaximum)
      more.hold(sessionId)
      if (isGoingOn || !sampled || state === 'ended') return
      if (counted !== sessionId) uploader.routed()
      counted = sessionId
      recorder.prepare(wanted)
      resume()
    },
    settle: ({ id: of, identity }: Era) => uploader.settle(of, targetOf(identity)),
    /** Ends the session at once. What follows, starting with a snapshot, waits for the next IDs. */
    aside(next: string) {
      const isOn = state === 'on'
      if (isOn) recorder.now()?.write()
      uploader.aim({ browser: '', session: next })
      if (!isOn) return
      uploader.routed()
      resume()
    },
    /** The page was restored from the bfcache, which counts as a page view. */
    show() {
      counted = undefined
      uploader.show()
    },
    pause,
    finish,
    stop,
  }
}

function isDone(run: () => void) {
  try {
    run()
    return true
  } catch {
    return false
  }
}

const uploadsOf = (options: RecordingOptions) => ({
  ...options,
  platform: { ...browserCarrier, ...options.platform },
  generation: options.sessions.era().id,
})

/** Where events of an era belong; undefined if it never had a session. */
const targetOf = (identity: Identity | undefined): Target | undefined =>
  identity && {
    browser: identity.browserId,
    session: identity.sessionId,
    startedAt: identity.startedAt,
  }

/** Keeps a recorder, and replaces it when the masking changes. */
function byMasking(create: (masking: Masking) => Recorder) {
  let recorder: Recorder | undefined
  let masking: Masking | undefined
  const stop = () => {
    recorder?.stop()
    recorder = undefined
  }
  const isFor = ({ preset, unmask }: Masking) =>
    recorder !== undefined && masking?.preset === preset && masking.unmask === unmask
  return {
    now: () => recorder,
    masking: () => masking,
    isFor,
    stop,
    prepare(wanted: Masking) {
      if (isFor(wanted)) return
      stop()
      masking = wanted
      recorder = create(wanted)
    },
  }
}
