/** How long requests and attempts may take to end after a signal; a start has none. */
const stopSeconds = 10
const startStopSeconds = 3

/** How often it checks that the npm that started this process is still running. */
const parentSeconds = 0.5

/** The message by which a supervisor stops a process. */
export const stopMessage = 'stop'

/** The work was ended by a signal. */
class Stopped extends Error {
  override readonly name = 'Stopped'
}

export interface Stop {
  /** Aborted by the first signal. */
  signal: AbortSignal
  /** Waits for a step of the start; a signal interrupts it. */
  unless<T>(step: Promise<T>): Promise<T>
  /** The start is over: resolves at the first signal. */
  wait(): Promise<void>
}

/**
 * Runs a service until SIGTERM, SIGINT or SIGHUP. Exits at once if the stop takes too long, at a second
 * signal, or at SIGQUIT; the embedded database then ends too (`watcher.ts`).
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
  // From the supervisor; a signal of the terminal may have come first.
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

/** npm passes on only SIGINT and SIGTERM. Other signals end npm, but not this process. */
function whenParentIsGone(stop: () => void): void {
  const parent = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(watch)
    stop()
  }, parentSeconds * 1_000)
  watch.unref()
}
