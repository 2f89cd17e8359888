import { describe, expect } from 'vitest'
import { fold } from '../src/persons/fold.ts'
import { searchPersons } from '../src/persons/search.ts'
import { indexSearchTail } from '../src/persons/search-index.ts'
import { writePerson } from '../src/persons/store.ts'
import type { Db } from '../src/sql.ts'
import { newProject, test } from './fixtures.ts'

/** So small that a few thousand persons make many segments and every path is taken. */
const segments = {
  smallProjectPersons: 1,
  segmentPersons: 200,
  partPersons: 60,
  longestText: 300,
  seconds: 60,
}
const tuning = { newestRows: 150, mostRows: 40 }

interface Seed {
  externalId: string
  name?: unknown
  email?: unknown
}

/** Creates persons in the order given. */
async function create(db: Db, project: number, seeds: Seed[]) {
  for (const { externalId, ...properties } of seeds) {
    await writePerson(db.short, project, externalId, properties as never, true)
  }
}

interface Known {
  id: string
  fields: string[]
}

/** Every person of the project with its folded fields, the newest first. */
async function everybody(db: Db, project: number): Promise<Known[]> {
  const rows = await db.sql<{ id: string; externalId: string; properties: string }>`
    select id, external_id as "externalId", properties::text as properties
    from persons where project_id = ${project} order by id desc`
  return rows.map(({ id, externalId, properties }) => {
    const { name, email } = JSON.parse(properties)
    const fields = [externalId, name, email].filter((field) => typeof field === 'string')
    return { id, fields: fields.map(fold) }
  })
}

function expected(known: Known[], term: string, beforeId: string | null, limit: number) {
  const folded = fold(term)
  return known
    .filter(({ id }) => beforeId === null || BigInt(id) < BigInt(beforeId))
    .filter(({ fields }) => fields.some((field) => field.includes(folded)))
    .slice(0, limit)
    .map(({ id }) => id)
}

/** Compares each term at several cursors and limits with what a look at everybody finds. */
async function compare(db: Db, project: number, terms: string[]): Promise<number> {
  const known = await everybody(db, project)
  let compared = 0
  for (const term of terms) {
    const all = expected(known, term, null, known.length)
    const cursors = [
      null,
      all[0],
      all[Math.floor(all.length / 2)],
      known[Math.floor(known.length / 3)]?.id,
      known[known.length - 100]?.id,
    ].filter((cursor) => cursor !== undefined)
    for (const cursor of cursors) {
      for (const limit of [1, 51]) {
        const found = await searchPersons(db.sql, project, term, cursor, limit, tuning)
        expect(
          found.map(({ id }) => id),
          `${JSON.stringify(term)} before ${cursor} limit ${limit}`,
        ).toEqual(expected(known, term, cursor, limit))
        compared += 1
      }
    }
  }
  return compared
}

const pick = <Item>(items: Item[], at: number) => items[at % items.length] as Item

/** The n-th of a population with every kind of text: deterministic, and skewed as real ones are. */
function population(n: number, total: number): Seed {
  const first = pick(['james', 'Mary', 'Élodie', 'zoë', 'Ömer', 'ana', 'IŞIL', 'Ορφεύς'], n * 7)
  const last = pick(['Smith', 'Hodkiewicz', 'Müller', 'Straße', 'ΟΔΥΣΣΕΥΣ', 'Kowalski'], n * 5)
  const domain = pick(['gmail.com', 'gmail.com', 'Acme.io', 'initech.co.uk'], n * 3)
  const seed: Seed = {
    externalId: `user_${n}`,
    name: `${first} ${last}${n % 97}`,
    email: `${first}.${last}${n}@${domain}`,
  }
  if (n < total / 10) seed.email = `${n}@oldcorp.example`
  if (n % 100 === 3) seed.name = `One Percent ${n}`
  if (n % 1000 === 4) seed.name = `per mille ${n}`
  if (n % 11 === 0) delete seed.email
  if (n % 13 === 0) seed.name = n
  const special = specials[n % 50 === 7 ? n / 50 - 7 / 50 : -1]
  if (special !== undefined) seed.name = special
  return seed
}

const specials = [
  '100 % _ \\ plain',
  "O'Brien \\' \"quoted\" 'single'",
  'a:b & c | d ! (e) <-> *:*',
  "'':'':'' && || !! ()",
  '三上 悠亜',
  '李小龍',
  '𝒳 astral 🎉🎉 𐐀',
  'İstanbul ıI',
  'ẞ STRASSE ß',
  'e\u0301 decomposed',
  'new\nline\ttab\r',
  '\ufffe\uffff\ufffd',
  '☃☃☃',
  '',
  ' ',
  'ﬁne ﬂow Ⅷ ŉ Ǆ',
  'qzx',
  '\u0307',
]

const terms = [
  ...['a', 'e', '@', '.', '1', '9', '_'],
  ...['an', 'ma', 'il', '99', '_9', 'r_', '@a', 'ß', 'ss'],
  ...['com', 'gmail', 'user', 'user_9', 'mail.com', 'gmail.com', 'SMITH', 'smith'],
  ...['hodkiewicz', 'Hodkiewicz7', 'kowalski1', 'müller', 'MÜLLER', 'acme', 'initech.co.uk'],
  ...['mary hodkiewicz', 'james smith', 'élodie', 'ÉLODIE', 'zoë', 'z', 'x', 'q', 'w', 'k'],
  ...['james.smith1234@', 'mary.kowalski77@gmail.com', 'user_1234', 'user_7', 'user_2999', '2999'],
  ...['absent', 'zzz', 'qqqqq', '9999999', 'gmail.com@gmail', 'smithsmith', 'useruser', '1111'],
  ...['ж', '\u4e00', '☂', '~', 'qy', 'zj', '~~', '上三', 'qz', 'zx', 'qzx', 'qzxq'],
  ...['oldcorp', '@oldcorp.example', '7@oldcorp', 'one percent', 'per mille', 'PER MILLE 2'],
  ...['%', '_', '\\', "'", ':', '&', '|', '!', '(', ')', '*', '<', '"', '%%', "''", '\\\\'],
  ...["\\'", ':*', '& c', "'':", '% _ \\', "o'brien", '"quoted"', 'a:b', '(e)', '!!', '<->', ' '],
  ...['三', '三上', '上 悠', '李小龍', '小', '𝒳', '🎉', '🎉🎉', '𐐀', '𐐨', '☃', '☃☃☃', '☃☃☃☃'],
  ...['Σ', 'σ', 'ς', 'οδυσσευς', 'ΟΔΥΣΣΕΥΣ7', 'ΣΣ', 'İ', 'i̇', 'ı', 'I', 'i', 'istanbul', 'ışıl'],
  ...['STRASSE', 'straße', 'ẞ', 'é', 'É', 'e\u0301', 'e', 'n\nl', '\n', '\t', '\r', '\ufffe'],
  ...['\uffff', '\ufffd', 'fine', 'flow', 'viii', 'ʼn', 'ǆ', '\u0307', 'smith0\uffffjames', '  '],
]

describe('a search finds exactly what has the text, in pages, the newest first', () => {
  const total = 3_000

  test('at every mixture of tail and segments', async ({ db, project }) => {
    const seeds = Array.from({ length: total }, (_, n) => population(n, total))
    await create(db, project.id, seeds.slice(0, 2_400))
    expect(await compare(db, project.id, terms)).toBeGreaterThan(900)

    expect(await indexSearchTail(db, segments)).toBe(2_400)
    await compare(db, project.id, terms)

    await create(db, project.id, seeds.slice(2_400))
    for (let n = 0; n < 2_400; n += 17) {
      const { externalId, ...properties } = population(n + 1, total)
      await writePerson(db.short, project.id, `user_${n}`, properties as never, false)
    }
    await db.sql`
      delete from persons where project_id = ${project.id} and mod(id, 1048576) % 19 = 0`
    await compare(db, project.id, terms)

    await indexSearchTail(db, segments)
    await compare(db, project.id, terms)
  }, 180_000)
})
void newProject
