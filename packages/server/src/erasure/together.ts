import type { Db, Sql } from '../sql.ts'

/** Runs one piece of work in a transaction, and answers once it is committed. */
export type CommitTogether = <T>(work: (tx: Sql) => Promise<T>) => Promise<T>

interface Waiting {
  work: (tx: Sql) => Promise<unknown>
  resolve(result: never): void
  reject(error: unknown): void
}

/**
 * Transactions that wait for one another anyway, as those that take the same lock until their
 * commit is on the disk, are made one: whatever comes while a commit is under way goes into the
 * next. Where a shared one fails, for whatever reason, each piece is done again by itself, so it
 * has to be safe to repeat, and none suffers from another's fault.
 */
export function commitTogether(db: Db, piecesMaximum: number): CommitTogether {
  const waiting: Waiting[] = []
  let isRunning = false

  async function run() {
    isRunning = true
    while (waiting.length > 0) {
      const part = waiting.splice(0, piecesMaximum)
      if (!(part.length > 1 && (await tryTogether(part)))) {
        for (const one of part) await db.begin(one.work).then(one.resolve as never, one.reject)
      }
    }
    isRunning = false
  }

  async function tryTogether(part: Waiting[]): Promise<boolean> {
    try {
      const results = await db.begin(async (tx) => {
        const all: unknown[] = []
        for (const { work } of part) all.push(await work(tx))
        return all
      })
      for (const [index, one] of part.entries()) one.resolve(results[index] as never)
      return true
    } catch {
      return false
    }
  }

  return (work) =>
    new Promise((resolve, reject) => {
      waiting.push({ work, resolve: resolve as never, reject })
      if (!isRunning) void run()
    })
}
