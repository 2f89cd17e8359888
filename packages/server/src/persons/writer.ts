import { type Db, type Sql, writesAtOnce } from '../sql.ts'
import { type PersonWrite, type PersonWritten, writePersons } from './store.ts'

/** Writes one statement takes at most, which bounds how long each of them waits for the others. */
const togetherMaximum = 64

/** A body above this takes the database long enough to hold up what is written together with it. */
const bodyBytesMaximum = 16_384

/** So many writes that wait are worth a statement of their own, whatever they wait for. */
const worthStatement = 16

/** A statement that takes longer may be waiting for a lock: the next one goes beside it. */
const patienceMilliseconds = 20

/** Of these classes is a fault of one row: nothing of the statement took place, for nobody. */
const isFaultOfRow = /^(?:21|22|23|40|54|55|57014)/

interface Waiting {
  write: PersonWrite
  done: (written: PersonWritten) => void
  failed: (error: unknown) => void
}

/**
 * Writes persons, those that arrive while others are being written together in one statement: a
 * commit waits for the disk, and many writes wait no longer for it than one. Each has its own
 * answer, and one that fails fails alone.
 */
export function personWriter(db: Pick<Db, 'writes' | 'sql'>) {
  const queue: Waiting[] = []
  let statements = 0
  /** Of those that write, the one that takes what waits; none where 0. */
  let leader = 0
  let leaders = 0
  let begunAt = 0
  let isWatched = false

  async function lead(): Promise<void> {
    leaders++
    leader = leaders
    const mine = leader
    statements++
    while (queue.length > 0 && leader === mine) {
      begunAt = performance.now()
      await writeTogether(db.writes, queue.splice(0, togetherMaximum))
    }
    statements--
    if (leader === mine) leader = 0
  }

  function begin(): void {
    if (leader === 0 && queue.length > 0) void lead()
  }

  /** As long as writes wait: takes the lead from a statement that goes on too long. */
  function watch(): void {
    if (isWatched || queue.length === 0) return
    isWatched = true
    setTimeout(() => {
      isWatched = false
      const isSlow = performance.now() - begunAt >= patienceMilliseconds
      if (isSlow && queue.length > 0 && statements < writesAtOnce) void lead()
      watch()
    }, patienceMilliseconds)
  }

  return (write: PersonWrite, bodyBytes: number): Promise<PersonWritten> =>
    new Promise((done, failed) => {
      const waiting = { write, done, failed }
      if (bodyBytes > bodyBytesMaximum) return void writeTogether(db.sql, [waiting])
      queue.push(waiting)
      if (queue.length >= worthStatement && statements < writesAtOnce) void lead()
      else if (leader !== 0) watch()
      // Nothing to wait for: after all requests that have arrived by now have been read.
      else if (queue.length === 1) setImmediate(begin)
    })
}

async function writeTogether(sql: Sql, part: Waiting[]): Promise<void> {
  // Two statements that lock the same persons do so in the same order.
  part.sort((a, b) => compare(a.write, b.write))
  try {
    const written = await writePersons(
      sql,
      part.map(({ write }) => write),
    )
    for (let at = 0; at < part.length; at++) part[at]?.done(written[at] as PersonWritten)
  } catch (error) {
    if (part.length > 1 && isFaultOfRow.test(String((error as { code?: unknown }).code))) {
      await Promise.all(part.map((one) => writeTogether(sql, [one])))
    } else {
      for (const { failed } of part) failed(error)
    }
  }
}

function compare(a: PersonWrite, b: PersonWrite): number {
  if (a.projectId !== b.projectId) return a.projectId - b.projectId
  return a.externalId < b.externalId ? -1 : a.externalId > b.externalId ? 1 : 0
}
