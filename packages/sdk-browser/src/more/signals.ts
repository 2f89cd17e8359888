import {
  isFailedRequest,
  type RecordedEvents,
  type RecordedTag,
} from '@lethe/contract/recorded-events.ts'
import type { eventWithTime } from '@rrweb/types'
import type { Signals } from '../api.ts'
import { elapsed } from '../recording/page-natives.ts'
import { watchClicks } from './clicks.ts'
import { watchConsole, watchErrors } from './errors.ts'
import { maskSignal } from './mask.ts'
import type { MoreOptions } from './more.ts'
import { watchRequests } from './requests.ts'
import { watchTyped } from './typed.ts'
import { watchVitals } from './vitals.ts'

/** Reports a signal. */
export type Tell = <T extends RecordedTag>(tag: T, payload: RecordedEvents[T]) => void

const SLOW_MILLISECONDS = 3_000
/** Limits the recorded signals of a kind, for pages that fail in a loop; all are counted. */
const WINDOW_MILLISECONDS = 10_000
const WINDOW_EVENTS_MAXIMUM = 50

/** Records the signals that the options turn on, masked like the page. */
export function watchSignals(options: MoreOptions) {
  const typed = watchTyped()
  const room = createRoom()
  const tell: Tell = (tag, payload) => {
    const masking = options.masking()
    if (!masking) return
    const counted = countedAs(tag, payload)
    const isRecorded =
      room(tag) && options.add(tag, maskSignal(tag, payload, masking.preset, typed.values()))
    if (counted && (isRecorded || options.idOf(document) > 0)) options.count(counted)
  }
  const { errors, console, requests, clicks, vitals, slowMilliseconds } = wanted(options.signals)
  const clicked = clicks ? watchClicks(options, tell) : undefined
  const slow = requests ? (slowMilliseconds ?? SLOW_MILLISECONDS) : undefined
  const ends = [
    typed.end,
    errors && watchErrors(tell),
    console && watchConsole(tell),
    (requests || clicks) && watchRequests(options, slow, tell, () => clicked?.act()),
    clicked?.end,
    vitals && watchVitals(tell),
  ]
  return {
    seen: (event: eventWithTime) => clicked?.seen(event),
    end() {
      for (const end of ends) if (end) end()
    },
  }
}

function wanted(signals: boolean | Signals = {}): Signals {
  if (signals !== true) return signals || {}
  return { errors: true, console: true, requests: true, clicks: true, vitals: true }
}

/** The counter in the list of sessions that a signal adds to. */
function countedAs<T extends RecordedTag>(tag: T, payload: RecordedEvents[T]) {
  const { kind, status } = payload as Partial<
    RecordedEvents['lethe.click'] & RecordedEvents['lethe.request']
  >
  if (tag === 'lethe.error') return 'errors'
  if (tag === 'lethe.click') return kind === 'rage' ? 'rageClicks' : 'deadClicks'
  return tag === 'lethe.request' && isFailedRequest(status ?? 0) ? 'failedRequests' : undefined
}

/** Returns a function that tells whether another signal of a kind may be recorded. */
function createRoom() {
  const windows = new Map<string, { from: number; events: number }>()
  return (tag: string) => {
    const now = elapsed()
    let window = windows.get(tag)
    if (!window || now - window.from > WINDOW_MILLISECONDS) {
      window = { from: now, events: 0 }
      windows.set(tag, window)
    }
    return ++window.events <= WINDOW_EVENTS_MAXIMUM
  }
}
