import type { Blobs } from '../src/blobs/blobs.ts'
import type { Effects } from '../src/erasure/lease.ts'
import type { Db, Sql } from '../src/sql.ts'

/** What a process that was killed does from then on: nothing. */
export class Crash extends Error {
  override readonly name = 'Crash'
}

export interface CrashingEffects {
  effects: Effects
  /** Whether the crash has happened. */
  readonly hasCrashed: boolean
  /** How many effects there were, or were tried. */
  readonly count: number
}

/**
 * Counts every effect on the world outside, statements, commits, calls of the blob store, and dies
 * at the n-th: before it took place, or after it did and before anybody heard of it. Whatever is
 * tried after that fails.
 */
export function crashingAt(
  n: number,
  when: 'before' | 'after',
  { db, keySql, blobs }: Effects,
): CrashingEffects {
  let count = 0
  let isDead = false

  async function effect<T>(run: () => Promise<T>): Promise<T> {
    if (isDead) throw new Crash()
    const isMine = ++count === n
    if (isMine && when === 'before') {
      isDead = true
      throw new Crash()
    }
    try {
      return await run()
    } finally {
      if (isMine) isDead = true
      // biome-ignore lint/correctness/noUnsafeFinally: a dead process hears neither result nor fault
      if (isMine) throw new Crash()
    }
  }

  return {
    effects: {
      db: overDb(db, effect),
      keySql: overSql(keySql, effect),
      blobs: overBlobs(blobs, effect),
    },
    get hasCrashed() {
      return isDead
    },
    get count() {
      return count
    },
  }
}

export type Intercept = <T>(run: () => Promise<T>, what: string) => Promise<T>

/** Every statement goes through `intercept`, and every transaction as a whole, commit included. */
export function overDb(db: Db, intercept: Intercept): Db {
  return {
    sql: overSql(db.sql, intercept),
    short: overSql(db.short, intercept),
    begin: (work) =>
      intercept(() => db.begin((tx) => work(overSql(tx, intercept))), 'commit') as never,
    onLoss: db.onLoss,
    waiting: () => db.waiting(),
    end: () => db.end(),
  }
}

export function overSql(sql: Sql, intercept: Intercept): Sql {
  return ((strings: TemplateStringsArray, ...values: unknown[]) =>
    intercept(() => sql(strings, ...values), strings.join('?'))) as Sql
}

export function overBlobs(blobs: Blobs, intercept: Intercept): Blobs {
  return {
    open: (prefix) => intercept(() => blobs.open(prefix), 'open'),
    put: (key, bytes, signal) => intercept(() => blobs.put(key, bytes, signal), 'put'),
    get: (key, signal) => intercept(() => blobs.get(key, signal), 'get'),
    delete: (keys, signal) => intercept(() => blobs.delete(keys, signal), 'delete'),
    deletePrefix: (prefix, options) =>
      intercept(() => blobs.deletePrefix(prefix, options), 'deletePrefix'),
    visit: (prefix, onKeys, signal) =>
      intercept(() => blobs.visit(prefix, onKeys, signal), 'visit'),
    isEmpty: (prefix, signal) => intercept(() => blobs.isEmpty(prefix, signal), 'isEmpty'),
    list: (prefix) => blobs.list(prefix),
    check: () => blobs.check(),
    close: () => blobs.close(),
  }
}
