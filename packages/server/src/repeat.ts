import type { Log } from './log.ts'

/**
 * Runs `work` repeatedly, each time `seconds` after it last ended; `seconds` may depend on what it
 * returned. A fault is logged, and the next round tries again. The returned function stops this and
 * waits for a round in progress.
 */
export function repeat<T>(
  name: string,
  seconds: number | ((last: T | undefined) => number),
  work: () => Promise<T>,
  log: Log,
): () => Promise<void> {
  let isStopped = false
  let last: T | undefined
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  async function round() {
    last = undefined
    try {
      last = await work()
    } catch (error) {
      log.fault(name, error)
    }
    if (!isStopped) schedule()
  }

  function schedule() {
    const waitSeconds = typeof seconds === 'number' ? seconds : seconds(last)
    timer = setTimeout(() => {
      running = round()
    }, waitSeconds * 1_000)
    // Background work does not keep the process running.
    timer.unref()
  }

  schedule()
  return async () => {
    isStopped = true
    clearTimeout(timer)
    await running
  }
}
