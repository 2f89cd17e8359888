/**
 * Runs the same work on one PostgreSQL and on Citus clusters of one, two and three nodes, all on this
 * machine: `node bench/citus.ts [--seconds S]`. So it shows what distribution costs, and not what
 * more machines gain. Prints a table in Markdown. Needs a PostgreSQL with Citus.
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { distribute } from '../packages/server/src/distribute.ts'
import { claimJobs } from '../packages/server/src/erasure/job-leases.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { searchPersons } from '../packages/server/src/persons/search.ts'
import { findPerson, listPersons } from '../packages/server/src/persons/store.ts'
import { personWriter } from '../packages/server/src/persons/writer.ts'
import { createProject } from '../packages/server/src/projects/store.ts'
import {
  confirmChunks,
  insertBrowserWithSession,
  intendChunk,
} from '../packages/server/src/recordings/ingest-store.ts'
import { connect, type Db } from '../packages/server/src/sql.ts'
import { startCitus } from '../scripts/citus.ts'
import { startInstalledPostgres } from '../scripts/installed-postgres.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '4' } },
})
const seconds = Number(options.seconds)
const clients = 16

interface Server {
  url: string
  stop(): void
}

const servers: Record<string, () => Server | undefined> = {
  'one PostgreSQL': () => startInstalledPostgres({ fsync: true }),
  'Citus, 1 node': () => startCitus({ workers: 0, fsync: true }),
  'Citus, 2 nodes': () => startCitus({ workers: 2, fsync: true }),
  'Citus, 3 nodes': () => startCitus({ workers: 3, fsync: true }),
}

const rates: Record<string, Record<string, number>> = {}
for (const [name, start] of Object.entries(servers)) {
  const server = start()
  if (!server) throw new Error(`${name}: not installed.`)
  try {
    await migrate(server.url)
    await migrate(server.url, 'keys')
    if (name.startsWith('Citus')) await distribute(server.url)
    const db = connect({ connection: server.url })
    rates[name] = await measure(db)
    await db.end()
  } finally {
    server.stop()
  }
}
const names = Object.keys(servers)
console.log(`Operations per second of ${clients} clients with a project each, ${seconds} s each:\n`)
console.log(`| | ${names.join(' | ')} |\n| --- |${' ---: |'.repeat(names.length)}`)
for (const what of Object.keys(rates[names[0] as string] ?? {})) {
  console.log(`| ${what} | ${names.map((name) => rates[name]?.[what]?.toFixed(0)).join(' | ')} |`)
}

async function measure(db: Db): Promise<Record<string, number>> {
  const projects = await Promise.all(
    Array.from({ length: clients }, (_, n) => createProject(db.sql, `bench ${n}`)),
  )
  const write = personWriter(db)
  const places = projects.map(({ id }) => ({
    projectId: id,
    browserId: randomUUID(),
    sessionId: randomUUID(),
    tab: 'tab1',
  }))
  for (const place of places) {
    const session = { ...place, url: null, userAgent: null, sdkVersion: null }
    await insertBrowserWithSession(db.sql, session)
  }
  const idOf = (client: number) => projects[client]?.id as number
  const properties = { name: 'ada lovelace', email: 'ada@example.org', plan: 'pro' }
  return {
    'persons created': await rate((client, n) =>
      write({ projectId: idOf(client), externalId: `p${n}`, properties, createMissing: true }, 100),
    ),
    'persons read': await rate((client, n) => findPerson(db.short, idOf(client), `p${n % 10}`)),
    'pages of 50': await rate((client) => listPersons(db.sql, idOf(client), null, 51)),
    searches: await rate((client) => searchPersons(db.sql, idOf(client), 'lovelace', null, 51)),
    'chunks stored (rows only)': await rate(async (client, n) => {
      const place = { ...(places[client] as (typeof places)[number]), number: n }
      const blobKey = `blobs/${client}/${n}`
      await intendChunk(db.sql, place, blobKey)
      await confirmChunks(db.sql, [{ ...place, blobKey, bytes: 9_000 }], { waits: true })
    }),
    'checks for work in all projects': await rate(() => claimJobs(db.sql, 32)),
  }
}

/** Returns how often per second all clients together can do it. */
async function rate(work: (client: number, n: number) => Promise<unknown>): Promise<number> {
  const end = performance.now() + seconds * 1_000
  let count = 0
  const lane = async (client: number) => {
    for (let n = 0; performance.now() < end; n++) {
      await work(client, n)
      count++
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => lane(client)))
  return count / seconds
}
