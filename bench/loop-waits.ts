/**
 * Runs inside a service that is measured (`node --import`): how long its event loop waits. At each
 * SIGUSR2 writes what there was since the last one to the file LOOP_WAITS, as LoopWaits in JSON.
 *
 * The service's own metric looks every 10 ms and counts those 10 ms in; this looks every one.
 */
import { rename, writeFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'

export interface LoopWaits {
  /** The longest time between two looks, with what the machine gave to others meanwhile. */
  longestMilliseconds: number
  /** The longest processor time of the loop's thread between two looks, which is our own doing. */
  longestProcessorMilliseconds: number
}

const lookMilliseconds = 1

function processorMilliseconds(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

function watch(file: string): void {
  const delays = monitorEventLoopDelay({ resolution: lookMilliseconds })
  delays.enable()
  let last = processorMilliseconds()
  let longest = 0
  setInterval(() => {
    const now = processorMilliseconds()
    longest = Math.max(longest, now - last)
    last = now
  }, lookMilliseconds).unref()
  process.on('SIGUSR2', async () => {
    const waits: LoopWaits = {
      longestMilliseconds: Math.max(0, delays.max / 1e6 - lookMilliseconds),
      longestProcessorMilliseconds: longest,
    }
    await writeFile(`${file}.new`, JSON.stringify(waits))
    // What this itself took is over before the next ones are looked at.
    await setTimeout(50)
    delays.reset()
    longest = 0
    await rename(`${file}.new`, file)
  })
}

if (isMainThread && process.env.LOOP_WAITS) watch(process.env.LOOP_WAITS)
