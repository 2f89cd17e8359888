import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openEmbedded } from '../packages/server/src/embedded/embedded.ts'
import { migrate } from '../packages/server/src/migrate.ts'
import { searchPersons } from '../packages/server/src/persons/search.ts'
import { indexSearchTail } from '../packages/server/src/persons/search-index.ts'
import { listPersons, writePerson } from '../packages/server/src/persons/store.ts'
import { connect, connectOne, type Db, type DbAddress } from '../packages/server/src/sql.ts'

const { values: flags } = parseArgs({
  options: {
    /** In all: four fifths in one large project, the rest in a thousand small ones. */
    persons: { type: 'string', default: '1000000' },
    repeats: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '8' },
    /** Measures on what an earlier run with --keep left in the database. */
    keep: { type: 'boolean', default: false },
  },
})
const persons = Number(flags.persons)
const repeats = Number(flags.repeats)
const seconds = Number(flags.seconds)

const databaseName = 'lethe_bench_search'

async function main() {
  const { address, close } = await server()
  const isNew = await freshDatabase(address)
  const target = { ...address, database: databaseName }
  if (isNew) await migrate(target)
  const db = connect({ connection: target, statementSeconds: 600, shortConnections: 4 })
  try {
    if (isNew) await load(db)
    const projects = await projectsOf(db)
    await measureIndexing(db)
    await measureSearches(db, projects)
    await measureCreates(db, projects.large)
    await printSizes(db)
  } finally {
    await db.end()
    await close()
  }
}

async function server(): Promise<{ address: DbAddress; close(): Promise<void> }> {
  const url = process.env.LETHE_BENCH_DATABASE_URL
  if (url) {
    const { hostname, port, username, password, pathname, searchParams } = new URL(url)
    return {
      address: {
        host: searchParams.get('host') ?? hostname,
        port: Number(port || 5432),
        user: decodeURIComponent(username),
        database: pathname.slice(1),
        ...(password && { password: decodeURIComponent(password) }),
      },
      close: async () => {},
    }
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'lethe-bench-'))
  const embedded = await openEmbedded({ dataDir })
  return {
    address: embedded.address,
    async close() {
      await embedded.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function freshDatabase(address: DbAddress): Promise<boolean> {
  const { sql, client, end } = await connectOne(address)
  const rows = await sql`select from pg_database where datname = ${databaseName}`
  const isNew = !flags.keep || rows.length === 0
  if (isNew) {
    await client.query(`drop database if exists ${databaseName} with (force)`)
    await client.query(`create database ${databaseName} template template0 encoding 'UTF8'`)
  }
  await end()
  return isNew
}

const firstNames = `james mary robert patricia john jennifer michael linda david elizabeth william
  barbara richard susan joseph jessica thomas sarah charles karen andre françois søren björn yuki
  haruto mei wei ahmed fatima olga ivan dmitri anna maria josé carlos ana luis peter hans greta
  lars ingrid noah liam emma olivia ava mia sophia isabella lucas mason ethan logan ella grace
  chloe nora hugo felix leon paul marie julie camille louis jules élodie zoë ольга дмитрий 三上
  李 みさき γιάννης`.split(/\s+/)
const syllables = `ba ber bin cor dal den dor fel fin gar gor hal hod kie wicz kow lan ler lin lom
  mar mer mon nor or pel per ram ren rin sal sen smi son sten tam ter ton vak ver wal win xan yor
  zel zim`.split(/\s+/)
const domains = `gmail.com gmail.com gmail.com gmail.com gmail.com yahoo.com yahoo.com outlook.com
  outlook.com hotmail.com icloud.com acme.io globex.net initech.co.uk umbrella.org hooli.dev
  stark.industries wayne.enterprises example.org proton.me`.split(/\s+/)

/**
 * Persons in the order of their creation, every fifth of them in one of a thousand small projects.
 * Names and addresses are drawn by a hash of the person's number, so every run has the same ones;
 * they are in lower case, so their folded form is they themselves. The oldest tenth has a domain
 * that nobody else has.
 */
async function load(db: Db): Promise<void> {
  const began = performance.now()
  await db.sql`
    insert into projects (name) select 'project ' || i from generate_series(1, 1002) as i`
  await db.begin(async (tx) => {
    await tx`set local synchronous_commit = off`
    await tx`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select
        case when n % 5 = 0 then 2 + (n / 5) % 1000 else 1 end,
        (extract(epoch from moment) * 1000)::bigint << 20 | (n & 1048575),
        case when n % 3 = 0 then 'user_' || n else left(md5(n::text), 16) end,
        jsonb_build_object(
          'name', first_name || ' ' || last_name,
          'email', first_name || '.' || last_name || mod(n, 977) || '@'
            || case when n < ${persons}::integer / 10 and hash3 % 4 = 0 then 'oldcorp.com'
                 else (${domains}::text[])[1 + hash3 % ${domains.length}] end,
          'plan', (array['free', 'pro', 'team'])[1 + hash1 % 3], 'visits', mod(n, 50)),
        moment, moment
      from generate_series(1, ${persons}::integer) as n
      cross join lateral (
        select abs(hashint4(n) / 2) as hash1, abs(hashint4(n + 1000000000) / 2) as hash2,
               abs(hashint4(-n) / 2) as hash3,
               timestamptz '2025-01-01' + n * interval '20 ms' as moment
      ) as drawn
      cross join lateral (
        select (${firstNames}::text[])[1 + hash1 % ${firstNames.length}] as first_name,
               (${syllables}::text[])[1 + hash2 % ${syllables.length}]
               || (${syllables}::text[])[1 + hash2 / 64 % ${syllables.length}]
               || case when hash3 % 3 = 0
                    then (${syllables}::text[])[1 + hash2 / 4096 % ${syllables.length}]
                    else '' end as last_name
      ) as named`
    await tx`
      insert into person_search (project_id, person_id, text)
      select project_id, id, concat_ws(
        U&'\\FFFF', external_id, properties->>'name', properties->>'email')
      from persons order by id`
  })
  await db.sql`vacuum analyze persons, person_search, projects`
  print(`Loaded ${persons} persons in ${((performance.now() - began) / 1_000).toFixed(0)} s.\n`)
}

interface Projects {
  large: number
  small: number
}

async function projectsOf(db: Db): Promise<Projects> {
  const rows = await db.sql<{ id: number }>`select id from projects order by id limit 1`
  const large = rows[0]!.id
  return { large, small: large + 500 }
}

async function measureIndexing(db: Db): Promise<void> {
  const began = performance.now()
  let indexed = 0
  for (let given = -1; given !== 0; indexed += given) {
    given = await indexSearchTail(db, { seconds: 10 })
  }
  await db.sql`vacuum analyze person_search`
  if (indexed === 0) return
  const rowsPerSecond = indexed / ((performance.now() - began) / 1_000)
  print(
    `The index step gave ${indexed} persons their segment: ${rowsPerSecond.toFixed(0)} a second.\n`,
  )
}

/** Classes of texts, each by how the search has to find them. Some are taken from the data. */
async function classesOf(db: Db, project: number): Promise<Record<string, string[]>> {
  const rows = await db.sql<{ externalId: string; name: string; email: string }>`
    select external_id as "externalId", properties->>'name' as name, properties->>'email' as email
    from persons where project_id = ${project} and mod(hashint8(id), 20) = 0
    order by hashint8(id) limit 20`
  const lastNames = rows.map(({ name }) => name.split(' ')[1]!)
  return {
    'frequent, 1 character': ['a', 'e', '@', '.', '1', 'o', 'r'],
    'frequent, 2 characters': ['an', 'co', 'ma', 'er', 'il', '.c'],
    'frequent, 3 or more': ['com', 'gmail', 'user', 'mail.com', 'yahoo', 'user_9'],
    'last name': lastNames,
    'company domain': ['acme.io', 'globex', 'initech.co.uk', 'wayne', 'stark.ind', 'hooli.dev'],
    'full name': rows.map(({ name }) => name),
    'email, one person': rows.map(({ email }) => email),
    'externalId, one person': rows.map(({ externalId }) => externalId),
    absent: ['zqx9', 'nobody here', 'qqq', 'xyzzy', 'jjjj', '---'],
    'absent, of frequent grams': [
      ...['gmail.com@gmail', 'useruser', 'mail.commail', 'anan.anan', '.com.com', 'ermaner'],
      ...lastNames.slice(0, 6).map((name) => `user_${name}`),
    ],
    'one repeated gram': ['999', '9999', '999999', '000', '0000', '1111', 'aaa', 'eee'],
    'rare, 1 character': ['q', '三', 'ø', 'γ', '李', 'ё'],
    'absent, 1 character': ['ж', '~', '☃', '#', '漢'],
    'rare, 2 characters': ['xa', 'zi', 'øs', 'ux', '三上', 'ai', 'yx', '9z'],
    'absent, 2 characters': ['qz', 'zq', '~~', '漢字', 'q9'],
    special: ['%', '_', '%%', '\\', "'", 'a_b', '_9', '(x', ':', '&|!', '@a', '..'],
    'not ASCII': ['françois', 'Élodie', 'ЗОЯ', 'ольга', 'みさき', 'Γιάννης', 'zoë', '三上 ba'],
    'the oldest tenth only': ['oldcorp', '@oldcorp.com', 'oldcorp.', '1@oldcorp'],
    'about 1 %': ['louis', 'paul ', 'emma.', 'grace', 'felix'],
    'about 0.1 %': ['user_12', 'anna ba', 'leon.h', 'hodkie', 'user_77'],
  }
}

async function measureSearches(db: Db, { large, small }: Projects): Promise<void> {
  const noise = await timings(() => db.sql`select 1`, 500)
  const rows: string[][] = [['(the statement `select 1`)', '', ...figures(noise, noise), '']]
  const add = async (name: string, target: number, runs: (() => Promise<unknown>)[]) => {
    const all: number[] = []
    const middles: number[] = []
    for (const run of runs) {
      const times = await timings(run, repeats)
      all.push(...times)
      middles.push(quantile(times, 0.5))
    }
    const met = quantile(all, 0.99) < target ? 'yes' : 'NO'
    rows.push([name, `${runs.length}`, ...figures(all, middles), `< ${target} ${met}`])
  }
  const search = (term: string, before: string | null = null, project = large) =>
    searchPersons(db.sql, project, term, before, 51)

  const cursors = (
    await db.sql<{ id: string }>`
      select id from persons where project_id = ${large} and mod(hashint8(id), 50) = 0
      order by hashint8(id) limit 12`
  ).map(({ id }) => id)
  const classes = await classesOf(db, large)
  for (const [name, terms] of Object.entries(classes)) {
    await add(
      name,
      10,
      terms.map((term) => () => search(term)),
    )
  }
  await add(
    'any page: every class',
    10,
    Object.values(classes).flatMap((terms) =>
      cursors.slice(0, 3).map((cursor, at) => () => search(terms[at % terms.length]!, cursor)),
    ),
  )
  await add(
    'a small project',
    10,
    ['a', 'gmail', 'absent', 'q'].map((term) => () => search(term, null, small)),
  )
  await add('the list', 3, [() => listPersons(db.sql, large, null, 51)])
  await add(
    'the list, any page',
    3,
    cursors.map((cursor) => () => listPersons(db.sql, large, cursor, 51)),
  )
  print(
    table(
      ['search in the large project', 'texts', 'p50 ms', 'p99 ms', 'highest median', 'target p99'],
      rows,
    ),
  )
}

function figures(all: number[], middles: number[]): string[] {
  return [quantile(all, 0.5), quantile(all, 0.99), Math.max(...middles)].map((ms) => ms.toFixed(2))
}

async function timings(run: () => Promise<unknown>, times: number): Promise<number[]> {
  await run()
  const measured: number[] = []
  for (let i = 0; i < times; i++) {
    const began = performance.now()
    await run()
    measured.push(performance.now() - began)
  }
  return measured
}

function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

/** Creates with and without the index step beside them, in turns; and searches meanwhile. */
async function measureCreates(db: Db, project: number): Promise<void> {
  const rates = { without: [] as number[], with: [] as number[] }
  const searches: number[] = []
  let first = Date.now()
  const creates = async () => {
    const end = performance.now() + seconds * 1_000
    let created = 0
    const began = performance.now()
    const client = async () => {
      while (performance.now() < end) {
        const n = first++
        created += 1
        await writePerson(
          db.short,
          project,
          `created_${n}`,
          {
            name: `${firstNames[n % firstNames.length]} ${syllables[n % syllables.length]}son`,
            email: `person.${n}@${domains[n % domains.length]}`,
            plan: 'pro',
          },
          true,
        )
      }
    }
    await Promise.all(Array.from({ length: 32 }, client))
    return created / ((performance.now() - began) / 1_000)
  }
  for (let turn = 0; turn < 2; turn++) {
    rates.without.push(await creates())
    const kept = keepIndexed(db)
    const searching = keepSearching(db, project, searches)
    rates.with.push(await creates())
    await searching()
    await kept()
  }
  const ratio = sum(rates.with) / sum(rates.without)
  print(
    table(
      ['creates', 'a second', 'target'],
      [
        ['without the index step', mean(rates.without).toFixed(0), ''],
        ['with the index step, and a search every 50 ms', mean(rates.with).toFixed(0), ''],
        ['share', `${(100 * ratio).toFixed(0)} %`, `≥ 60 % ${ratio >= 0.6 ? 'yes' : 'NO'}`],
      ],
    ),
  )
  print(
    `Searches meanwhile: p50 ${quantile(searches, 0.5).toFixed(1)} ms, p99 ${quantile(searches, 0.99).toFixed(1)} ms.\n`,
  )
  const [tail] = await db.sql<{ rows: string }>`
    select count(*) as rows from person_search
    where project_id = ${project} and coalesce(segment, 0) = 0`
  print(`Not indexed yet at the end: ${tail?.rows} persons.\n`)
}

function keepIndexed(db: Db): () => Promise<void> {
  let isStopped = false
  const work = (async () => {
    while (!isStopped) {
      await indexSearchTail(db)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  })()
  return async () => {
    isStopped = true
    await work
  }
}

function keepSearching(db: Db, project: number, times: number[]): () => Promise<void> {
  let isStopped = false
  const terms = ['gmail', 'zqx9', 'oldcorp', 'q', 'person.1', 'hodkie']
  const work = (async () => {
    for (let n = 0; !isStopped; n++) {
      const began = performance.now()
      await searchPersons(db.sql, project, terms[n % terms.length]!, null, 51)
      times.push(performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  return async () => {
    isStopped = true
    await work
  }
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: number[]) => sum(values) / values.length

async function printSizes(db: Db): Promise<void> {
  const rows = await db.sql<{ name: string; size: string }>`
    select relname as name, pg_size_pretty(pg_relation_size(oid)) as size
    from pg_class
    where relname like 'person_search%' or relname like 'search_shares%' or relname = 'persons'
    order by pg_relation_size(oid) desc`
  print(
    table(
      ['relation', 'size'],
      rows.map(({ name, size }) => [name, size]),
    ),
  )
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |\n`
  return `${line(head)}${line(head.map(() => '---'))}${rows.map(line).join('')}\n`
}

function print(text: string): void {
  process.stdout.write(text)
}

await main()
