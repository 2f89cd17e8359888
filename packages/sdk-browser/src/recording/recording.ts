import type { MaskingPreset } from '../api.ts'
import type { Identity } from '../identity.ts'
import { type Masking, tightest } from '../masking/preset.ts'
import type { Platform } from '../platform.ts'
import type { Server } from '../request.ts'
import { createRecorder, type Recorder } from './recorder.ts'
import { createUploader } from './uploader.ts'

export interface RecordingOptions {
  platform: Platform
  server: Server
  /** What the page asks for. */
  masking: MaskingPreset
  /** The server has retired this browser; whatever was waiting for it is gone. */
  retired(browserId: string): void
  /** The server wants nothing more from this page. */
  stopped(): void
}

/** `offline`: the session is over, and the next one cannot be begun. */
export type PauseReason = 'idle' | 'buffer_full' | 'offline'

export type Recording = ReturnType<typeof createRecording>

/**
 * The part of the SDK that is loaded late: the recorder, turned on and off, and the uploader its
 * events go to.
 */
export function createRecording({ platform, server, masking, retired, stopped }: RecordingOptions) {
  let recorder: Recorder | undefined
  let masked: Masking | undefined
  let state: 'off' | 'on' | 'ended' | PauseReason = 'off'
  /** The session that knows of this view of the page. */
  let counted: string | undefined

  const uploader = createUploader(platform, server, {
    retired,
    stopped,
    torn: () => (state === 'on' || state === 'buffer_full') && resume(),
    hopeless: (reason) => end(reason),
    full: () => pause('buffer_full'),
  })
  const stop = () => {
    recorder?.stop()
    recorder = undefined
    if (state !== 'ended') state = 'off'
  }
  const end = (reason?: string) => {
    if (reason) uploader.say('lethe:stopped', { reason })
    state = 'ended'
    stop()
    uploader.flush()
  }
  const prepare = (wanted: Masking) => {
    if (recorder && masked?.preset === wanted.preset && masked.unmask === wanted.unmask) return
    recorder?.stop()
    masked = wanted
    const { write, say, enter } = uploader
    recorder = createRecorder({ masking: wanted, write, say, routed: enter, ended: end })
  }
  const resume = () => {
    try {
      state = 'on'
      recorder?.resume()
    } catch {
      end('fault')
    }
  }
  const finish = () => {
    if (state === 'on') recorder?.finish()
  }
  const pause = (reason?: PauseReason) => {
    if (state !== 'on') return
    if (reason === 'idle' || reason === 'offline') finish()
    recorder?.pause()
    state = reason ?? 'off'
    if (reason) uploader.say('lethe:paused', { reason })
  }
  return {
    ...uploader,
    state: () => state,
    /** Records into this session from here on, beginning with a full snapshot. */
    into({ browserId, sessionId, sampled, settings }: Identity) {
      finish()
      pause()
      uploader.aim({ browser: browserId, session: sessionId }, settings.chunkBytesMaximum)
      if (!sampled || state === 'ended') return
      if (counted !== sessionId) uploader.enter()
      counted = sessionId
      prepare(tightest(masking, settings.masking))
      resume()
    },
    /** The page is back from the browser's memory, which is a view of its own. */
    show() {
      counted = undefined
      uploader.show()
    },
    pause,
    finish,
    stop,
  }
}
