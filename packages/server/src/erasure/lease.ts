import type { Blobs, Removed } from '../blobs/blobs.ts'
import type { Db, Sql } from '../sql.ts'
import { type ClaimedJob, LeaseLost, leaseSeconds, noteProgress } from './attempts.ts'
import type { CommitTogether } from './together.ts'

/** All that an erasure acts on. Faults are injected here, and nowhere else. */
export interface Effects {
  db: Db
  /** The database of the browsers' data keys. */
  keySql: Sql
  blobs: Blobs
  /** Transactions that take the lock of the same project; without it each is one of its own. */
  commitTogether?: CommitTogether
}

/** The hold on a job. It ends when another worker may have taken the job, or on `end`. */
export interface Lease {
  /** The step the attempt is in. */
  step: string
  /** Aborts what is in flight when the lease is over. */
  signal: AbortSignal
  /** Effects that take place only while the lease is held, and that keep it. */
  effects: Required<Effects>
  /** What the blob store removed and nobody has noted yet; the caller notes it. */
  takeUnnoted(): { blobs: number; bytes: number }
  end(): void
}

export interface LeasePace {
  renewSeconds: number
  /** How often progress is noted, so that it can be watched. */
  noteSeconds: number
  /** An attempt in which nothing took place for so long hangs, and has to lose its lease. */
  hungSeconds: number
}

const paceDefault: LeasePace = { renewSeconds: 10, noteSeconds: 2, hungSeconds: 60 }

/**
 * Keeps the lease of an attempt as long as it moves on. `sentAt` is when the claim was sent, on the
 * clock of performance.now(): the lease began after that, so a deadline counted from then never
 * lies behind the database's. `stopping` ends it early.
 */
export function holdLease(
  effects: Effects,
  job: ClaimedJob,
  sentAt: number,
  stopping: AbortSignal | undefined,
  { renewSeconds, noteSeconds, hungSeconds }: LeasePace = paceDefault,
): Lease {
  const controller = new AbortController()
  const { signal } = controller
  const unnoted = { blobs: 0, bytes: 0 }
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

  const lease: Lease = {
    step: 'drain',
    signal,
    effects: guard(effects, {
      signal,
      check() {
        // A process that was frozen may come here before its timers do.
        if (performance.now() >= until) lose()
        signal.throwIfAborted()
      },
      moved() {
        movedAt = performance.now()
      },
      removed({ blobs, bytes }) {
        unnoted.blobs += blobs
        unnoted.bytes += bytes
      },
    }),
    takeUnnoted() {
      const taken = { ...unnoted }
      Object.assign(unnoted, { blobs: 0, bytes: 0 })
      return taken
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
    if (!renew && unnoted.blobs === 0 && step === notedStep) return
    if (renew) renewedAt = now
    notedStep = step
    try {
      await noteProgress(effects.db.sql, job, { step, ...lease.takeUnnoted() }, renew)
    } catch (error) {
      // Where the database is away the deadline decides; the next round tries again.
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

interface Guard {
  signal: AbortSignal
  check(): void
  moved(): void
  removed(removed: { blobs: number; bytes: number }): void
}

function guard(effects: Effects, guard: Guard): Required<Effects> {
  const { db, keySql, blobs, commitTogether = db.begin } = effects
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
    async commitTogether(work) {
      guard.check()
      return commitTogether((tx) => work(guardSql(tx, guard)))
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

function guardBlobs(blobs: Blobs, { signal, check, moved, removed }: Guard): Blobs {
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
    isEmpty: (prefix) => effect(() => blobs.isEmpty(prefix, signal)),
    deletePrefix: (prefix) =>
      effect(async () => {
        let noted: Removed = { blobs: 0, bytes: 0 }
        const note = (now: Removed) => {
          removed({ blobs: now.blobs - noted.blobs, bytes: now.bytes - noted.bytes })
          noted = now
        }
        const onProgress = (now: Removed) => {
          note(now)
          check()
          moved()
        }
        const all = await blobs.deletePrefix(prefix, { signal, onProgress })
        note(all)
        return all
      }),
  }
}
