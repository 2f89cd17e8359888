import type { MaskingPreset } from './api.ts'
import type { Platform } from './platform.ts'
import type { Recording, RecordingOptions } from './recording/recording.ts'
import type { Server } from './request.ts'
import type { Sessions } from './sessions.ts'

/** Fetches the late part of the SDK. */
export type LoadRecorder = () => Promise<{ createRecording(options: RecordingOptions): Recording }>

export interface FollowOptions {
  platform: Platform
  server: Server
  sessions: Sessions
  masking: MaskingPreset
  loadRecorder: LoadRecorder
  inOrder(run: () => unknown): void
  halted(): boolean
  halt(): void
}

/** Keeps the recording in step with the sessions: each begins with a snapshot of its own. */
export function followSessions(options: FollowOptions) {
  const { sessions, inOrder, halted } = options
  let recording: Recording | undefined
  let isAsked = false

  const retired = (browserId: string) => {
    if (sessions.current()?.browserId !== browserId) return
    recording?.pause()
    inOrder(() => sessions.current()?.browserId === browserId && rotate(true))
  }
  const record = async () => {
    const identity = await sessions.ensure()
    sessions.touch()
    if (identity?.sampled && !recording) {
      const { createRecording } = await options.loadRecorder()
      if (halted()) return
      recording = createRecording({ ...options, retired, stopped: options.halt })
    }
    if (identity) recording?.into(identity)
  }
  const rotate = async (isRetired: boolean) => {
    recording?.finish()
    recording?.pause()
    if (isRetired) recording?.discard(sessions.current()?.browserId)
    else recording?.aim(undefined)
    await sessions.rotate(isRetired)
    await record()
  }
  return {
    recording: () => recording,
    rotate,
    /** Makes sure of the session and records into it. Asked twice at a time, it does so once. */
    recordAgain() {
      if (isAsked) return
      isAsked = true
      inOrder(() => record().finally(() => (isAsked = false)))
    },
  }
}
