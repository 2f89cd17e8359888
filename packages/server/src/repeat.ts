import type { Log } from './log.ts'

/**
 * Does `work` again and again, `seconds` after it ended the last time; a fault is logged and the
 * next round tries again. The answered function ends that and waits for a round in the making.
 */
export function repeat(
  name: string,
  seconds: number,
  work: () => Promise<unknown>,
  log: Log,
): () => Promise<void> {
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()

  async function round() {
    try {
      await work()
    } catch (error) {
      log.fault(name, error)
    }
    if (!isStopped) schedule()
  }

  function schedule() {
    timer = setTimeout(() => {
      running = round()
    }, seconds * 1_000)
    // Work in the background is no reason for a process to stay.
    timer.unref()
  }

  schedule()
  return async () => {
    isStopped = true
    clearTimeout(timer)
    await running
  }
}
