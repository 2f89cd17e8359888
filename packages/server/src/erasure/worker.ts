import { repeat } from '../repeat.ts'
import type { DbOptions } from '../sql.ts'
import { type AttemptOptions, isAny, runAttempts, Stopping } from './attempt.ts'
import { claimJobs, reapLostAttempts, togetherMaximum } from './job-leases.ts'
import { jobsChannel, noteWorker } from './jobs.ts'
import { listen } from './listener.ts'

export interface WorkerOptions extends AttemptOptions {
  /**
   * Jobs processed at the same time; each takes at most one connection of the pool. Those of
   * persons with few recordings that are processed together count as one.
   */
  jobsAtOnce: number
  /** Where to listen for new jobs; without it they are found by polling. */
  connection?: DbOptions['connection']
  /** Polling finds what a notification or this worker's own timers miss. */
  pollSeconds?: number
  /** Functions to call on other notifications of the same connection, by channel. */
  alsoHeard?: Record<string, () => void>
  reapSeconds?: number
}

export interface Worker {
  /** Resolves when every attempt in progress has been handed back or has ended. */
  stop(): Promise<void>
}

/** For a worker that listens, and for one that does not. */
const pollSecondsDefault = 15
const pollSecondsWithoutListener = 2

const reapSecondsDefault = 20

/** After a fault of the database, until the next try. */
const faultPauseSeconds = 1

/** Claims and processes jobs until it is stopped. Any number of workers may run at once. */
export function startWorker(options: WorkerOptions): Worker {
  const { db, log, metrics, retryDelaysSeconds, connection } = options
  const { reapSeconds = reapSecondsDefault, alsoHeard } = options
  const { pollSeconds = connection ? pollSecondsDefault : pollSecondsWithoutListener } = options
  const stopping = new AbortController()
  const { wake, sleep } = alarm()
  const running = new Set<Promise<void>>()
  const due = new Set<NodeJS.Timeout>()

  async function work() {
    while (!stopping.signal.aborted) {
      try {
        const hasRoom = running.size < options.jobsAtOnce
        if (hasRoom && (await claimAndStart())) continue
        await sleep(pollSeconds)
      } catch (error) {
        log.fault('worker.claim', error)
        await sleep(faultPauseSeconds)
      }
    }
    await Promise.all(running)
  }

  /** Returns whether there was a job. */
  async function claimAndStart(): Promise<boolean> {
    const sentAt = performance.now()
    const jobs = await claimJobs(db.sql, togetherMaximum)
    if (!isAny(jobs)) return false
    const [{ id, attempt }] = jobs
    const working = runAttempts(options, jobs, sentAt, stopping.signal)
      .then(
        (outcome) => {
          if (outcome === 'failed') wakeIn(retryDelaysSeconds[attempt - 1])
        },
        (error) => log.fault('worker.attempt', error, { jobId: id, attempt }),
      )
      .finally(() => {
        running.delete(working)
        wake()
      })
    running.add(working)
    return true
  }

  /** Wakes the worker when the next attempt is due; after the last one there is none. */
  function wakeIn(seconds: number | undefined) {
    if (seconds === undefined) return
    const timer = setTimeout(() => {
      due.delete(timer)
      wake()
    }, seconds * 1_000)
    due.add(timer)
  }

  async function reap() {
    const { lost, failed } = await reapLostAttempts(db.sql, retryDelaysSeconds)
    if (lost > 0) {
      metrics.observeReaped(lost)
      metrics.observeFailedJobs(failed)
      log.event('warn', 'worker.reaped', { count: lost })
    }
    await noteWorker(db.sql)
  }

  const working = work()
  // So that the dashboard shows the worker right after the start.
  const noting = noteWorker(db.sql).catch((error) => log.fault('worker.start', error))
  const stopReaping = repeat('worker.reap', reapSeconds, reap, log)
  const listener = connection
    ? listen(connection, { ...alsoHeard, [jobsChannel]: wake }, log)
    : undefined
  log.event('info', 'worker.started', { count: options.jobsAtOnce })

  return {
    async stop() {
      stopping.abort(new Stopping())
      wake()
      await Promise.all([working, noting, stopReaping(), listener?.stop()])
      for (const timer of due) clearTimeout(timer)
      log.event('info', 'worker.stopped')
    },
  }
}

/** A sleep that a call can end early, even a call made before it began. */
function alarm() {
  let ring = () => {}
  let rung = false
  return {
    wake() {
      rung = true
      ring()
    },
    async sleep(seconds: number) {
      if (!rung) {
        let timer: NodeJS.Timeout | undefined
        await new Promise<void>((resolve) => {
          ring = resolve
          timer = setTimeout(resolve, seconds * 1_000)
        })
        clearTimeout(timer)
      }
      rung = false
      ring = () => {}
    },
  }
}
