import { expect } from 'vitest'
import { LeaseLost } from '../src/erasure/attempts.ts'
import { commitTogether } from '../src/erasure/together.ts'
import type { Db } from '../src/sql.ts'
import { test } from './fixtures.ts'

/** Counts the transactions that were begun. */
function counting(db: Db) {
  let begun = 0
  const begin: Db['begin'] = (work) => {
    begun++
    return db.begin(work)
  }
  return { db: { ...db, begin }, begun: () => begun }
}

const named = (name: string) => (tx: Db['sql']) =>
  tx<{ name: string }>`insert into projects (name) values (${name}) returning name`

test('what comes while a commit is under way is committed in one, and each gets its own answer', async ({
  db,
}) => {
  const counted = counting(db)
  const together = commitTogether(counted.db, 100)
  const names = Array.from({ length: 30 }, (_, i) => `together ${i}`)
  const answers = await Promise.all(names.map((name) => together(named(name))))
  expect(answers).toEqual(names.map((name) => [{ name }]))
  // The first, which found nobody waiting, and all the others.
  expect(counted.begun()).toBe(2)
  expect(await db.sql`select from projects where name like 'together %'`).toHaveLength(30)
})

test('one that fails takes no other with it, and leaves nothing itself', async ({ db }) => {
  const together = commitTogether(db, 100)
  const settled = await Promise.allSettled([
    together(named('fault first')),
    together(named('fault a')),
    together(async (tx) => {
      await named('fault gone')(tx)
      throw new LeaseLost()
    }),
    together((tx) => tx`select 1 / 0`),
    together(named('fault b')),
  ])
  expect(settled.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
    'fulfilled',
  ])
  expect(settled[2]).toMatchObject({ reason: { name: 'LeaseLost' } })
  expect(settled[3]).toMatchObject({ reason: { code: '22012' } })
  const kept = await db.sql`select name from projects where name like 'fault %' order by name`
  expect(kept.map(({ name }) => name)).toEqual(['fault a', 'fault b', 'fault first'])
})

test('no more pieces than stated share a transaction', async ({ db }) => {
  const counted = counting(db)
  const together = commitTogether(counted.db, 4)
  await Promise.all(Array.from({ length: 13 }, (_, i) => together(named(`part ${i}`))))
  expect(counted.begun()).toBe(1 + 3)
})
