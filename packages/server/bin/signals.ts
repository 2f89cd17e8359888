/** How long requests and attempts in flight may take to end after a signal; a start has none. */
const stopSeconds = 10
const startStopSeconds = 3

/** How often it checks that the npm that started this process is still running. */
const parentSeconds = 0.5

/** Ends a process that another one has started, as SIGTERM does. */
export const stopMessage = 'stop'

/** A signal ended the work. */
class Stopped extends Error {
  override readonly name = 'Stopped'
}

export interface Stop {
  /** Aborted by the first signal. */
  signal: AbortSignal
  /** The result of a step of the start, which a signal interrupts. */
  unless<T>(step: Promise<T>): Promise<T>
  /** The start is over: resolves at the first signal. */
  wait(): Promise<void>
}

/**
 * Runs what stays until SIGTERM, SIGINT or SIGHUP ends it, at any moment of its life. What takes too
 * long after the first signal is cut off, as it is by a second one or by SIGQUIT. The embedded
 * database ends with the process in any case (`watcher.ts`).
 */
export async function untilStopped(work: (stop: Stop) => Promise<void>): Promise<void> {
  const { signal, hasStarted, started } = listenForSignals()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  aborted.catch(() => {})
  const stop: Stop = {
    signal,
    unless: (step) => Promise.race([step, aborted]),
    async wait() {
      started()
      await aborted.catch(() => {})
    },
  }
  try {
    await work(stop)
  } catch (error) {
    if (!signal.aborted || hasStarted()) throw error
  }
}

function listenForSignals() {
  const controller = new AbortController()
  let hasStarted = false
  const stop = () => {
    if (controller.signal.aborted) process.exit(1)
    const seconds = hasStarted ? stopSeconds : startStopSeconds
    setTimeout(() => process.exit(hasStarted ? 1 : 0), seconds * 1_000).unref()
    controller.abort(new Stopped('Stopped by a signal.'))
  }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop)
  process.on('SIGQUIT', () => process.exit(1))
  // From the supervisor of several processes. A signal of the terminal may have come before.
  process.on('message', (message) => {
    if (message === stopMessage && !controller.signal.aborted) stop()
  })
  if (process.env.npm_lifecycle_event !== undefined) whenParentIsGone(stop)
  return {
    signal: controller.signal,
    hasStarted: () => hasStarted,
    started: () => {
      hasStarted = true
    },
  }
}

/** npm passes SIGINT and SIGTERM on, and is ended by all others, which would leave us alone. */
function whenParentIsGone(stop: () => void): void {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    stop()
  }, parentSeconds * 1_000)
  watch.unref()
}
