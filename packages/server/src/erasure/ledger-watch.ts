import type { Log } from '../log.ts'
import { DatabaseUnreachable, type Db } from '../sql.ts'
import { readStanding, type Standing } from './ledger-store.ts'

export interface LedgerWatch {
  /** Whether the database may have gone back in time, and was not compared with the ledger since. */
  isHeld(): boolean
  /** How often it was held so far. What was begun before the last time may come from another server. */
  holds(): number
  /**
   * Behind a pooler, which hides a lost connection: holds unless the server that responds now is the
   * one from before. What was read before the call came from it then.
   */
  confirm?(): Promise<void>
  stop(): Promise<void>
}

export interface WatchOptions {
  db: Db
  log: Log
  /** Between two looks while nothing has happened. */
  watchSeconds?: number
  /** Whether a pooler stands in between, which hides a lost connection. */
  isPooled?: boolean
}

/** A lost connection is noticed at once. */
const watchSecondsDefault = 15

/** From a loss to the look after it, and between looks until one succeeds. */
const heldSeconds = 0.25

/**
 * Notices a database that goes back in time under a running process: another server responds (after
 * a failover, a restart or a restore), or the last number of the ledger is smaller than it was. Then
 * `compare` is called until it succeeds, and until then `isHeld`. A lost connection holds too, until
 * the first look after it: nobody is served by a server that was not looked at. `last` is what was
 * there before the comparison of the start. One small statement a look.
 *
 * Behind a pooler each response waits for a look that began after it was made (`confirm`); those that
 * wait at the same time share one.
 */
export function watchLedger(
  { db, log, watchSeconds = watchSecondsDefault, isPooled = false }: WatchOptions,
  last: Standing,
  compare: () => Promise<unknown>,
): LedgerWatch {
  let seen = last
  let isHeld = false
  let holds = 0
  /** Connections that were lost so far: one that is lost during a look calls for another look. */
  let losses = 0
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  function hold(): void {
    if (!isHeld) holds++
    isHeld = true
  }

  const isOther = (now: Standing) => now.server !== seen.server || now.lastNumber < seen.lastNumber

  async function look(): Promise<void> {
    const lost = losses
    // Not the pool, which may have several connections to a machine that is gone.
    const now = await readStanding(db.short)
    if (isOther(now)) {
      hold()
      log.event('warn', 'ledger.database_changed')
      await compare()
    }
    // What the comparison has added comes with the next look.
    seen = now
    isHeld = lost !== losses
  }

  function lookAfter(seconds: number): void {
    clearTimeout(timer)
    if (isStopped) return
    timer = setTimeout(() => {
      looking = look()
        .catch((error) => {
          // Requests and jobs that need the database report that it is away.
          if (!(error instanceof DatabaseUnreachable)) log.fault('ledger.watch', error)
        })
        .finally(() => {
          looking = undefined
          lookAfter(isHeld ? heldSeconds : watchSeconds)
        })
    }, seconds * 1_000).unref()
  }

  function lose(): void {
    hold()
    losses++
    if (!looking) lookAfter(heldSeconds)
  }

  async function glance(): Promise<void> {
    const now = await readStanding(db.short).catch(() => undefined)
    if (!now || isOther(now)) lose()
  }

  db.onLoss(lose)
  lookAfter(watchSeconds)
  return {
    isHeld: () => isHeld,
    holds: () => holds,
    ...(isPooled && { confirm: sharing(glance) }),
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await looking
    },
  }
}

/** Runs `work` again for every caller. Callers that come while it runs share the next run. */
function sharing(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  return () => {
    next ??= (running ?? Promise.resolve()).then(() => {
      next = undefined
      running = work()
      return running
    })
    return next
  }
}
