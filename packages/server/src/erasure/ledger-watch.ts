import type { Log } from '../log.ts'
import { DatabaseUnreachable, type Db } from '../sql.ts'
import { readStanding, type Standing } from './ledger-store.ts'

export interface LedgerWatch {
  /** Whether the database may have gone back in time and is yet to be compared with the ledger. */
  isHeld(): boolean
  /** How often it was held. A read that began before the last time may be of another server. */
  holds(): number
  /**
   * Behind a pooler, which hides lost connections: holds unless the server is still the same one.
   * Then everything read before the call came from it.
   */
  confirm?(): Promise<void>
  stop(): Promise<void>
}

export interface WatchOptions {
  db: Db
  log: Log
  /** How often the database is checked while nothing happens. */
  watchSeconds?: number
  /** Whether there is a pooler in between, which hides lost connections. */
  isPooled?: boolean
}

/** Lost connections are noticed at once, without a check. */
const watchSecondsDefault = 15

/** How long after a lost connection the check comes, and the next one until one succeeds. */
const heldSeconds = 0.25

/**
 * Notices when the database goes back in time under a running process: another server responds
 * (after a failover, a restart or a restore), or the last number of the ledger is smaller than
 * before. Then it calls `compare` until that succeeds, and `isHeld` until then. A lost connection
 * also holds, until the next check: no response comes from a server that was not checked. `last` is
 * the state before the comparison at the start. A check is one small statement.
 *
 * Behind a pooler each response waits for a check that began after the response was built
 * (`confirm`). Responses that wait at the same time share a check.
 */
export function watchLedger(
  { db, log, watchSeconds = watchSecondsDefault, isPooled = false }: WatchOptions,
  last: Standing,
  compare: () => Promise<unknown>,
): LedgerWatch {
  let seen = last
  let isHeld = false
  let holds = 0
  /** Connections lost so far. If one is lost during a check, another check follows. */
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
    // The next check sees what the comparison has added.
    seen = now
    isHeld = lost !== losses
  }

  function lookAfter(seconds: number): void {
    clearTimeout(timer)
    if (isStopped) return
    timer = setTimeout(() => {
      looking = look()
        .catch((error) => {
          // Requests and jobs report an unreachable database themselves.
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
