import type { eventWithTime } from '@rrweb/types'
import type { MaskEvent } from '../masking/masker.ts'

/** Masks events and writes them as lines of JSON, in tasks of its own. */
export function createWriter(
  mask: MaskEvent,
  write: (line: string, isSnapshot: boolean) => void,
  inOwnTask: (run: () => void) => void,
  fault: () => void,
) {
  let waiting: eventWithTime[] = []
  let isScheduled = false

  const writeAll = () => {
    const events = waiting
    waiting = []
    try {
      for (const event of events) {
        const masked = mask(event)
        if (masked) write(JSON.stringify(masked), masked.type === 2)
      }
    } catch {
      fault()
    }
  }
  return {
    writeAll,
    queue(events: eventWithTime[]) {
      waiting.push(...events)
      if (isScheduled) return
      isScheduled = true
      inOwnTask(() => {
        isScheduled = false
        writeAll()
      })
    },
    clear() {
      waiting = []
    },
  }
}
