import type { eventWithTime } from '@rrweb/types'
import type { Masking } from '../masking/preset.ts'
import { setUrlRules } from '../masking/url.ts'
import type { FollowMore } from '../more/more.ts'
import { now } from './clock.ts'
import type { Recorder } from './recorder.ts'
import type { RecordingOptions } from './recording.ts'
import { STARTED } from './tab.ts'
import type { Uploader } from './uploader.ts'

const RING_MILLISECONDS = 60_000
/** The bit for holds by a setting (buffer.ts). */
const HOLD = 2

interface Parts {
  recorder: { now(): Recorder | undefined; masking(): Masking | undefined }
  uploader: Uploader
  /** Takes another snapshot if the page is being recorded. */
  again(): void
}

/** Optional features, loaded only if settings ask for them. They end with the recording. */
export function moreOf(options: RecordingOptions, parts: () => Parts) {
  setUrlRules(options)
  const { platform, signals, start: rules } = options
  const isHeld = rules?.on === 'error' || rules?.minimumSeconds
  let isOver = false
  let more: ReturnType<FollowMore> | undefined
  const start = () => {
    const session = parts().uploader.session()
    if (session && isHeld) platform.tab.set(STARTED, session)
    parts().uploader.release(true, HOLD)
  }
  const load = async () => {
    const { followMore } = await options.loadMore()
    if (isOver) return
    more = followMore({
      ...options,
      masking: () => parts().recorder.masking(),
      idOf: (node) => parts().recorder.now()?.idOf(node) ?? -1,
      add: (tag, payload) =>
        parts().recorder.now()?.emit({ type: 5, data: { tag, payload }, timestamp: now() }) ??
        false,
      count: parts().uploader.count,
      begin: start,
      renew() {
        parts().uploader.trim(now() - RING_MILLISECONDS)
        parts().again()
      },
    })
  }
  if (signals || isHeld || options.assets) load().catch(() => {})
  return {
    /** Starts sending: what was held so far, and what follows. */
    start,
    /** Called before the first event of a session. Holds the session if settings say so. */
    hold(session: string) {
      if (isHeld && platform.tab.get(STARTED) !== session) parts().uploader.hold(HOLD)
      else start()
    },
    seen: (event: eventWithTime) => more?.seen(event),
    end() {
      isOver = true
      more?.end()
    },
  }
}
