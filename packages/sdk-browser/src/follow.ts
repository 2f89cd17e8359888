import { backoff } from './answer.ts'
import type { MaskingPreset, Options } from './api.ts'
import type { FollowMore, Guard } from './more/more.ts'
import { type Platform, pause } from './platform.ts'
import { warn } from './quiet.ts'
import type { Recording, RecordingOptions } from './recording/recording.ts'
import type { WatchOptions } from './recording/watch.ts'
import type { Server } from './request.ts'
import type { Era, Sessions } from './sessions.ts'

/** Fetches what only settings ask for. */
export type LoadMore = () => Promise<{ followMore: FollowMore; guard: Guard }>

/** Fetches the late part of the SDK. */
export type LoadRecorder = () => Promise<{
  createRecording(options: RecordingOptions): Recording
  watch(options: WatchOptions): () => void
}>

export interface FollowOptions extends Options {
  platform: Platform
  server: Server
  sessions: Sessions
  masking: MaskingPreset
  loadRecorder: LoadRecorder
  loadMore: LoadMore
  inOrder(run: () => unknown): void
  /** Whether the application has called `start()`: then no lot decides. */
  page: { isStarted?: boolean }
  halted(): boolean
  halt(): void
  isDenied(): boolean
  /** Another tab has taken back the visitor's consent. */
  forget(): void
}

/** Keeps the recording in step with the sessions: each begins with a snapshot of its own. */
export function followSessions(options: FollowOptions) {
  const { sessions, inOrder, halted } = options
  let recording: Recording | undefined
  let isAsked = false
  let isLoading = false
  let endWatch = () => {}

  /** From here on nothing goes to the browser before; what comes waits for the next one's ids. */
  const aside = (left: Era) => {
    // Whom it belongs to nobody will say: no call names them, or another tab does.
    if (!left.identity && (!left.isMine || !left.user)) recording?.settle(left)
    recording?.aside(sessions.era().id)
    recordAgain()
  }
  const leave = () => {
    const left = sessions.era()
    sessions.leave()
    aside(left)
  }
  /** Whether this tab still records as all the others do; if not, it does from now on. */
  const still = () => {
    const left = sessions.era()
    if (!sessions.moved()) return true
    aside(left)
    return false
  }
  const retired = (browserId: string) => {
    const left = sessions.era()
    if (left.identity?.browserId !== browserId) return
    recording?.discard(browserId)
    sessions.retire(left)
    aside(left)
  }
  /** Tries until the late part is there; the visitor may be offline, or block it. */
  const load = async () => {
    if (isLoading) return
    isLoading = true
    for (let failures = 1; !recording; failures++) {
      const late = await options.loadRecorder().catch(() => undefined)
      if (halted()) return
      if (late) {
        recording = late.createRecording({ ...options, retired, still })
        endWatch = late.watch({ ...options, recording, recordAgain, still })
      } else {
        if (failures === 1) warn('recorder not loaded')
        const wait = backoff(failures, 0, options.platform.random())
        await pause(options.platform, wait)
        if (halted()) return
      }
    }
    recordAgain()
  }
  /** Makes sure of an era's session; what was kept aside goes there. */
  const record = async (era: Era): Promise<void> => {
    const identity = await sessions.ensure(era)
    if (halted()) return
    if (era !== sessions.era()) {
      if (identity) recording?.settle(era)
      return record(sessions.era())
    }
    if (!identity) return
    if (options.page.isStarted) identity.sampled = identity.settings.sampleRate > 0
    sessions.touch()
    if (identity.sampled && !recording) void load()
    const isGoingOn = recording?.state() === 'on' && recording.session() === identity.sessionId
    if (!isGoingOn) recording?.into(identity)
  }
  /** Makes sure of the session and records into it. Asked twice at a time, it does so once. */
  const recordAgain = () => {
    if (isAsked) return
    isAsked = true
    inOrder(() => {
      isAsked = false
      return record(sessions.era())
    })
  }
  const end = () => {
    endWatch()
    recording?.stop()
  }
  return { recording: () => recording, record, recordAgain, leave, aside, retired, still, end }
}
