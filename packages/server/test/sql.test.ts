import { expect } from 'vitest'
import { isUnavailable } from '../src/http/errors.ts'
import { connect } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { test } from './fixtures.ts'

test('a statement that fails among others on a pipelined connection fails alone', async ({
  db,
}) => {
  const answers = await Promise.allSettled([
    db.short`select 1 as one`,
    db.short`select 1 / 0 as none`,
    db.short`select 2 as two`,
  ])
  expect(answers).toEqual([
    { status: 'fulfilled', value: [{ one: 1 }] },
    { status: 'rejected', reason: expect.objectContaining({ code: '22012' }) },
    { status: 'fulfilled', value: [{ two: 2 }] },
  ])
})

test('a database that no longer responds is given up, and asked again when it is back', async ({
  address,
}) => {
  const proxy = await startCuttingProxy(address)
  // A tenth of a second for statements, and five more seconds until the connection is given up.
  const through = connect({ connection: proxy.address, statementSeconds: 0.1 })
  for (const sql of [through.short, through.sql]) {
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
  }
  proxy.swallow(true)
  const asked = [
    through.short`select 1 as one`,
    through.short`select 2 as two`,
    through.sql`select 1 as one`,
  ]
  const answers = await Promise.allSettled(asked)
  for (const answer of answers) {
    expect(answer.status).toBe('rejected')
    expect(isUnavailable((answer as PromiseRejectedResult).reason)).toBe(true)
  }
  proxy.swallow(false)
  for (const sql of [through.short, through.sql]) {
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
  }
  await through.end()
  await proxy.close()
}, 60_000)
