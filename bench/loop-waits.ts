/**
 * Measures the delays of the event loop inside a service (`node --import`). On each SIGUSR2 it writes
 * those since the last one to the file in LOOP_WAITS, as LoopWaits in JSON. It samples every
 * millisecond; the service's own metric samples every 10 ms and includes those 10 ms.
 */
import { openSync, readSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

export interface LoopWaits {
  /** The longest delay of a sample. */
  longestMilliseconds: number
  /** The same without the time in which other threads had the processor. */
  longestOwnMilliseconds: number
}

const sampleMilliseconds = 1

/** Linux counts for each thread the nanoseconds it waited for a processor. */
const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
const line = Buffer.alloc(80)

function othersMilliseconds(): number {
  const [, delayed] = line.toString('latin1', 0, readSync(schedstat, line, 0, 80, 0)).split(' ')
  return Number(delayed) / 1e6
}

function watch(file: string): void {
  let last = { at: performance.now(), others: othersMilliseconds() }
  let longest = 0
  let longestOwn = 0
  const sample = () => {
    const now = { at: performance.now(), others: othersMilliseconds() }
    const waited = now.at - last.at - sampleMilliseconds
    longest = Math.max(longest, waited)
    longestOwn = Math.max(longestOwn, waited - (now.others - last.others))
    last = now
  }
  setInterval(sample, sampleMilliseconds).unref()
  process.on('SIGUSR2', async () => {
    const waits: LoopWaits = { longestMilliseconds: longest, longestOwnMilliseconds: longestOwn }
    await writeFile(`${file}.new`, JSON.stringify(waits))
    // The delay that this write causes is not counted.
    await setTimeout(50)
    longest = longestOwn = 0
    await rename(`${file}.new`, file)
  })
}

if (isMainThread && process.env.LOOP_WAITS) watch(process.env.LOOP_WAITS)
