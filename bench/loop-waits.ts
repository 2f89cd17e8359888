/**
 * Runs inside a service that is measured (`node --import`): how long its event loop waits. At each
 * SIGUSR2 writes what there was since the last one to the file LOOP_WAITS, as LoopWaits in JSON.
 *
 * The service's own metric looks every 10 ms and counts those 10 ms in; this looks every one.
 */
import { openSync, readSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

export interface LoopWaits {
  /** The longest time between two looks, in which the loop could do nothing else. */
  longestMilliseconds: number
  /** The same without the time in which the loop could have gone on and others had the processor. */
  longestOwnMilliseconds: number
}

const lookMilliseconds = 1

/** Linux counts for each thread how long it could have run and did not, in nanoseconds. */
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
  const look = () => {
    const now = { at: performance.now(), others: othersMilliseconds() }
    const waited = now.at - last.at - lookMilliseconds
    longest = Math.max(longest, waited)
    longestOwn = Math.max(longestOwn, waited - (now.others - last.others))
    last = now
  }
  setInterval(look, lookMilliseconds).unref()
  process.on('SIGUSR2', async () => {
    const waits: LoopWaits = { longestMilliseconds: longest, longestOwnMilliseconds: longestOwn }
    await writeFile(`${file}.new`, JSON.stringify(waits))
    // What this itself took is over before the next ones are looked at.
    await setTimeout(50)
    longest = longestOwn = 0
    await rename(`${file}.new`, file)
  })
}

if (isMainThread && process.env.LOOP_WAITS) watch(process.env.LOOP_WAITS)
