import type { Blobs, Removed } from '../blobs/blobs.ts'
import type { Db, Sql } from '../sql.ts'
import {
  type ClaimedJobs,
  LeaseLost,
  leaseSeconds,
  noteProgress,
  type RemovedByJob,
  type RemovedNow,
} from './job-leases.ts'

/** Everything that an erasure changes. Tests inject faults here and nowhere else. */
export interface Effects {
  db: Db
  /** The database of the browsers' data keys. */
  keySql: Sql
  blobs: Blobs
}

/** Holds jobs until `end`, or until another worker may have taken one of them. */
export interface Lease {
  /** The step the attempt is in. */
  step: string
  /** Aborted when the lease ends. */
  signal: AbortSignal
  /** Effects that only run while the lease is held. Each one counts as progress. */
  effects: Effects
  /** Counts what was removed outside the database. It is recorded a little later. */
  count(jobId: string, removed: Partial<Counted>): void
  /** Deletes blobs of a job and counts them. */
  deleteBlobs(jobId: string, prefix: string): Promise<void>
  /** Takes the counts that are not recorded yet. The caller records them. */
  takeUnnoted(): RemovedByJob
  /** Puts back counts that were taken and could not be recorded. */
  putBack(unnoted: RemovedByJob): void
  end(): void
}

export interface LeasePace {
  renewSeconds: number
  /** How often progress is recorded, so that it can be watched. */
  noteSeconds: number
  /** An attempt without an effect for this long is hung, and its lease is no longer renewed. */
  hungSeconds: number
}

const paceDefault: LeasePace = { renewSeconds: 10, noteSeconds: 2, hungSeconds: 60 }

/**
 * Renews the leases of attempts as long as they make progress. `sentAt` is the performance.now() at
 * which the claim was sent: the lease began later, so a deadline counted from it is never later
 * than the database's. `stopping` ends it early.
 */
export function holdLease(
  effects: Effects,
  jobs: ClaimedJobs,
  sentAt: number,
  stopping: AbortSignal | undefined,
  { renewSeconds, noteSeconds, hungSeconds }: LeasePace = paceDefault,
): Lease {
  const controller = new AbortController()
  const { signal } = controller
  let unnoted = new Map<string, Counted>()
  const addUnnoted = (jobId: string, added: Partial<Counted>) => {
    const sum = sumOf(unnoted.get(jobId), added)
    if (sum.blobs + sum.bytes + sum.keys > 0) unnoted.set(jobId, sum)
  }
  let until = sentAt + leaseSeconds * 1_000
  let renewedAt = sentAt
  let movedAt = performance.now()
  let notedStep = ''

  const lose = () => controller.abort(new LeaseLost())
  const stop = () => controller.abort(stopping?.reason)
  let deadline = setTimeout(lose, Math.max(0, until - performance.now()))
  const ticks = setInterval(() => void tick(), noteSeconds * 1_000)
  if (stopping?.aborted) stop()
  stopping?.addEventListener('abort', stop)

  const guarded = guard(effects, {
    signal,
    check() {
      // In a process that was frozen this may run before its timers do.
      if (performance.now() >= until) lose()
      signal.throwIfAborted()
    },
    moved() {
      movedAt = performance.now()
    },
  })
  const lease: Lease = {
    step: 'retire_browsers',
    signal,
    effects: guarded,
    count: addUnnoted,
    async deleteBlobs(jobId, prefix) {
      let noted: Removed = { blobs: 0, bytes: 0 }
      const note = (now: Removed) => {
        addUnnoted(jobId, { blobs: now.blobs - noted.blobs, bytes: now.bytes - noted.bytes })
        noted = now
      }
      note(await guarded.blobs.deletePrefix(prefix, { onProgress: note }))
    },
    takeUnnoted() {
      const taken = unnoted
      unnoted = new Map()
      return taken
    },
    putBack(removed) {
      for (const [jobId, one] of removed) addUnnoted(jobId, one)
    },
    end() {
      clearTimeout(deadline)
      clearInterval(ticks)
      stopping?.removeEventListener('abort', stop)
    },
  }

  async function tick() {
    const now = performance.now()
    const renew = now - renewedAt >= renewSeconds * 1_000
    if (now - movedAt > hungSeconds * 1_000) return
    const { step } = lease
    if (!renew && unnoted.size === 0 && step === notedStep) return
    if (renew) renewedAt = now
    notedStep = step
    try {
      await noteProgress(effects.db.sql, jobs, { step, removed: lease.takeUnnoted() }, renew)
    } catch (error) {
      // If the database is unreachable, the next round tries again, until the deadline.
      if (error instanceof LeaseLost) controller.abort(error)
      return
    }
    if (!renew || signal.aborted) return
    until = now + leaseSeconds * 1_000
    clearTimeout(deadline)
    deadline = setTimeout(lose, until - performance.now())
  }

  return lease
}

/** What is removed outside the database. */
type Counted = Pick<RemovedNow, 'blobs' | 'bytes' | 'keys'>

function sumOf(before: Counted | undefined, added: Partial<Counted>): Counted {
  return {
    blobs: (before?.blobs ?? 0) + (added.blobs ?? 0),
    bytes: (before?.bytes ?? 0) + (added.bytes ?? 0),
    keys: (before?.keys ?? 0) + (added.keys ?? 0),
  }
}

interface Guard {
  signal: AbortSignal
  check(): void
  moved(): void
}

function guard({ db, keySql, blobs }: Effects, guard: Guard): Effects {
  return {
    db: {
      ...db,
      sql: guardSql(db.sql, guard),
      short: guardSql(db.short, guard),
      async begin(work) {
        guard.check()
        return db.begin((tx) => work(guardSql(tx, guard)))
      },
    },
    keySql: guardSql(keySql, guard),
    blobs: guardBlobs(blobs, guard),
  }
}

function guardSql(sql: Sql, { check, moved }: Guard): Sql {
  return async (strings, ...values) => {
    check()
    const rows = await sql(strings, ...values)
    moved()
    return rows as never
  }
}

function guardBlobs(blobs: Blobs, { signal, check, moved }: Guard): Blobs {
  const effect = async <T>(run: () => Promise<T>): Promise<T> => {
    check()
    const result = await run()
    moved()
    return result
  }
  return {
    ...blobs,
    open: (prefix) => effect(() => blobs.open(prefix)),
    put: (key, bytes) => effect(() => blobs.put(key, bytes, signal)),
    get: (key) => effect(() => blobs.get(key, signal)),
    delete: (keys) => effect(() => blobs.delete(keys, signal)),
    visit: (prefix, onKeys) =>
      effect(() => blobs.visit(prefix, (keys) => effect(() => onKeys(keys)), signal)),
    isEmpty: (prefix) => effect(() => blobs.isEmpty(prefix, signal)),
    deletePrefix: (prefix, options) =>
      effect(() => {
        const onProgress = (now: Removed) => {
          options?.onProgress?.(now)
          check()
          moved()
        }
        return blobs.deletePrefix(prefix, { signal, onProgress })
      }),
  }
}
