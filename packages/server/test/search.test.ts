import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { readNodes } from '../src/distribute.ts'
import { fold } from '../src/persons/fold.ts'
import { searchPersons } from '../src/persons/search.ts'
import { indexSearchTail, type SearchIndexOptions } from '../src/persons/search-index.ts'
import { writePerson, writePersons } from '../src/persons/store.ts'
import { connectOne, type Db } from '../src/sql.ts'
import { newProject, test } from './fixtures.ts'
import { byDepth, isDeep } from './proof/deep.ts'

/** So small that a few thousand persons make many segments and every path is taken. */
const segments = {
  smallProjectPersons: 1,
  segmentPersons: 200,
  partPersons: 60,
  longestText: 300,
  seconds: 60,
}
/** Quicker, where what is asked is what the index then has. */
const wholeSegments = { ...segments, partPersons: segments.segmentPersons }

const tuning = { newestRows: 150, mostRows: 40 }

interface Seed {
  externalId: string
  name?: unknown
  email?: unknown
}

/** Creates persons in the order given. */
async function create(db: Db, project: number, seeds: Seed[]) {
  const writes = seeds.map(({ externalId, ...properties }) => ({
    projectId: project,
    externalId,
    properties: properties as never,
    createMissing: true,
  }))
  await db.begin(async (tx) => {
    for (let from = 0; from < writes.length; from += 100) {
      await writePersons(tx, project, writes.slice(from, from + 100), { skipLocked: false })
    }
  })
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

/** Compares each term at several cursors with what a look at everybody finds; returns how often. */
async function compare(db: Db, project: number, terms: string[]): Promise<number> {
  const known = await everybody(db, project)
  let compared = 0
  for (const term of terms) {
    const all = expected(known, term, null, known.length)
    const pages: [string | null | undefined, number][] = [
      [null, 51],
      [null, 1],
      [all[Math.floor(all.length / 2)], 7],
      [known[Math.floor(known.length / 3)]?.id, 51],
      [known[known.length - 100]?.id, 51],
    ]
    for (const [cursor, limit] of pages) {
      if (cursor === undefined) continue
      const found = await searchPersons(db.sql, project, term, cursor, limit, tuning)
      expect(
        found.map(({ id }) => id),
        `${JSON.stringify(term)} before ${cursor} limit ${limit}`,
      ).toEqual(expected(known, term, cursor, limit))
      compared += 1
    }
  }
  return compared
}

/** Runs the index step until the project has no tail. */
async function index(db: Db, project: number, options: SearchIndexOptions = segments) {
  for (;;) {
    const rows = await db.sql`
      select from person_search where project_id = ${project} and segment is null limit 1`
    if (rows.length === 0) return
    await indexSearchTail(db, options)
  }
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

/** All of them in a deep run, else every third. */
const some = (from: number) => terms.filter((_, n) => isDeep || n % 3 === from)

describe('a search finds exactly the persons that contain the text, in pages, newest first', () => {
  test('not indexed, indexed, and in part', async ({ db, project }) => {
    const total = byDepth(1_000, 3_000)
    const most = total * 0.8
    const seeds = Array.from({ length: total }, (_, n) => population(n, total))
    await create(db, project.id, seeds.slice(0, most))
    expect(await compare(db, project.id, some(0))).toBeGreaterThan(byDepth(200, 700))

    await index(db, project.id)
    await compare(db, project.id, some(1))

    await create(db, project.id, seeds.slice(most))
    for (let n = 0; n < most; n += 17) {
      const { externalId, ...properties } = population(n + 1, total)
      await writePerson(db.short, project.id, `user_${n}`, properties as never, false)
    }
    await db.sql`
      delete from persons where project_id = ${project.id} and mod(id, 1048576) % 19 = 0`
    await compare(db, project.id, some(2))

    await index(db, project.id)
    await compare(db, project.id, some(0))
  })

  test('whatever characters it is made of', async ({ db }) => {
    const field = fc
      .array(fc.constantFrom(...awkward), { maxLength: 8 })
      .map((characters) => characters.join(''))
    const people = fc.array(fc.record({ name: field, email: field }), {
      minLength: 1,
      maxLength: 12,
    })
    const piece = fc.tuple(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 7 }))
    await fc.assert(
      fc.asyncProperty(people, fc.array(piece, { maxLength: 8 }), async (seeds, pieces) => {
        const { id: project } = await newProject(db)
        const named = seeds.map((seed, n) => ({ externalId: `${seed.name}${n}`, ...seed }))
        await create(db, project, named)
        await index(db, project, { ...segments, segmentPersons: 3, partPersons: 2 })
        const known = await everybody(db, project)
        const texts = pieces.map(([person, from, length]) => {
          const characters = [...`${pick(named, person).name}${pick(named, person).email}`]
          return characters.slice(from % 8, (from % 8) + length).join('')
        })
        for (const term of [...texts, 'a', '\uffff']) {
          if (term === '') continue
          const found = await searchPersons(db.sql, project, term, null, 100, tuning)
          expect(found.map(({ id }) => id)).toEqual(expected(known, term, null, 100))
        }
      }),
      { numRuns: byDepth(20, 60) },
    )
  })

  test('and never a person of another project', async ({ db, project }) => {
    const other = await newProject(db)
    const seeds = Array.from({ length: 300 }, (_, n) => population(n, 300))
    await create(db, project.id, seeds)
    await create(db, other.id, [{ externalId: 'only here', name: 'found nowhere else' }, ...seeds])
    await index(db, project.id)
    await index(db, other.id)
    expect(await searchPersons(db.sql, project.id, 'nowhere', null, 9, tuning)).toEqual([])
    expect(await searchPersons(db.sql, other.id, 'nowhere', null, 9, tuning)).toHaveLength(1)
    for (const term of ['a@', 'gmail', 'user_29']) {
      const [mine, theirs] = await Promise.all(
        [project, other].map(({ id }) => searchPersons(db.sql, id, term, null, 1_000, tuning)),
      )
      expect(mine?.length).toBe(theirs?.length)
      expect(mine?.some(({ id }) => theirs?.some((their) => their.id === id))).toBe(false)
    }
  })

  test('texts that appeared after their frequency was estimated', async ({ db, project }) => {
    const seeds = Array.from({ length: 2_000 }, (_, n) => population(n, 2_000))
    await create(db, project.id, seeds)
    await index(db, project.id, wholeSegments)
    // They fill more than one segment, but too few for the frequencies to be estimated again.
    const newcomer = (n: number) => ({ externalId: `wxyq ${n % 5 ? '' : 'vjk '}${n}` })
    await create(
      db,
      project.id,
      Array.from({ length: 300 }, (_, n) => newcomer(n)),
    )
    await index(db, project.id)
    await create(db, project.id, [{ externalId: 'wxyq, the last' }])
    await compare(db, project.id, ['wxyq', 'wxyq vjk', 'vjk', 'jk', 'wx', 'wxyq 1'])
  })

  test('texts that only the oldest of a segment have, and one more later', async ({
    db,
    project,
  }) => {
    const person = (n: number) => ({
      externalId: `user_${n}`,
      name: n % 200 < 120 && n < 400 ? `early ${n}` : `late ${n}`,
    })
    await create(
      db,
      project.id,
      Array.from({ length: 500 }, (_, n) => person(n)),
    )
    await index(db, project.id)
    const texts = ['early', 'early 1', 'late', 'rly 11', 'user_1', 'early bird', 'bird']
    await compare(db, project.id, texts)
    const known = () => db.sql<{ segment: number; newest: string }>`
      select segment, newest from search_segment_grams
      where project_id = ${project.id} and gram = 'early' and newest is not null
      order by segment`
    const before = await known()
    // On a cluster nobody looks for the last of them.
    const isCluster = (await readNodes(db.sql)) !== undefined
    expect(before.map(({ segment }) => segment)).toEqual(isCluster ? [] : [1, 2])

    await writePerson(db.short, project.id, 'user_190', { name: 'early bird' }, false)
    await compare(db, project.id, texts)
    await index(db, project.id)
    await compare(db, project.id, texts)
    const early = expected(await everybody(db, project.id), 'early', null, 1_000)
    expect(await allPages(db, project.id, 'early', 60)).toEqual(early)
    if (isCluster) return
    const after = await known()
    expect(BigInt(after[0]?.newest as string)).toBeGreaterThan(BigInt(before[0]?.newest as string))
    expect(after[1]).toEqual(before[1])
  })

  test('with the person as it is now', async ({ db, project }) => {
    const written = await writePerson(db.short, project.id, 'A1', { name: 'Ada', n: 1e21 }, true)
    const [found] = await searchPersons(db.sql, project.id, 'ADA', null, 2)
    const { externalId, properties, createdAt, updatedAt } = written
    const person = { externalId, properties, createdAt, updatedAt }
    expect(found).toEqual({ id: expect.stringMatching(/^\d+$/), ...person })
  })

  test('while texts too long for the index are among them', async ({ db, project }) => {
    const filler = 'lorem ipsum '.repeat(15_000)
    await create(db, project.id, [
      ...Array.from({ length: 50 }, (_, n) => ({ externalId: `short ${n}` })),
      { externalId: 'long 1', name: `${filler} needle` },
      // Within the limit, and no two grams of it are the same.
      { externalId: 'long 2', email: manyCharacters(9_900) },
      ...Array.from({ length: 50 }, (_, n) => ({ externalId: `later ${n}` })),
    ])
    const limits = { smallProjectPersons: 1, segmentPersons: 20, partPersons: 7, seconds: 60 }
    await index(db, project.id, limits)
    // The long one is not looked at again and again. (Persons of other tests may still come in.)
    const versions = () => db.sql`
      select person_id, xmin::text from person_search where project_id = ${project.id} order by 1`
    const before = await versions()
    await indexSearchTail(db, limits)
    expect(await versions()).toEqual(before)
    const externalIds = async (term: string) =>
      (await searchPersons(db.sql, project.id, term, null, 9)).map(({ externalId }) => externalId)
    expect(await externalIds('needle')).toEqual(['long 1'])
    expect(await externalIds('m i')).toEqual(['long 1'])
    expect(await externalIds(manyCharacters(9_900).slice(9_000, 9_010))).toEqual(['long 2'])

    await writePerson(db.short, project.id, 'long 1', { name: 'now short' }, false)
    expect(await externalIds('needle')).toEqual([])
    expect(await externalIds('now sh')).toEqual(['long 1'])
    await index(db, project.id, limits)
    expect(await externalIds('now sh')).toEqual(['long 1'])
  })
})

/** Text of so many different characters, astral ones among them, that fold to themselves. */
const manyCharacters = (length: number) =>
  Array.from({ length }, (_, n) => String.fromCodePoint((n % 2 ? 0x20000 : 0x4e00) + n)).join('')

const awkward = [
  ...["'", '"', '\\', ':', '*', '&', '|', '!', '(', ')', '<', '>', '-', '%', '_', ' ', '\n', '\t'],
  ...['a', 'A', 'b', '0', '1', 'é', 'e\u0301', '\u0301', 'İ', 'ı', 'ß', 'Σ', 'ς', '三', '𝒳', '🎉'],
  ...['\u0001', '\u007f', '\u0085', '\u200d', '\u2028', '\ufffd', '\ufffe', '\uffff', '\u{10ffff}'],
]

describe('while persons come, change and go', () => {
  test('each page goes on where the last one ended', async ({ db, project }) => {
    await create(
      db,
      project.id,
      Array.from({ length: 900 }, (_, n) => ({
        externalId: n % 3 === 0 ? `stays ${n}` : `churn ${n}`,
        name: n % 3 === 0 ? `Kept Person ${n}` : 'anybody',
      })),
    )
    await index(db, project.id, { ...segments, segmentPersons: 50 })
    const stays = (await everybody(db, project.id)).filter(({ fields }) =>
      fields[0]?.startsWith('stays'),
    )

    let isOver = false
    const done = { changed: 0, indexed: 0 }
    const again = async (work: (n: number) => Promise<unknown>) => {
      for (let n = 0; !isOver; n++) await work(n)
    }
    const background = [
      again((n) => create(db, project.id, [{ externalId: `new ${n}`, name: 'Kept Person?' }])),
      again(
        (n) => db.sql`delete from persons
        where project_id = ${project.id} and external_id = ${`new ${n - 30}`}`,
      ),
      again(async (n) => {
        const name = n % 2 === 0 ? 'kept person for now' : 'anybody'
        const externalId = `churn ${((n * 7) % 300) * 3 + 1}`
        await writePerson(db.short, project.id, externalId, { name }, false)
      }),
      // They match all the time, but leave the index and come back to it.
      again(async (n) => {
        const properties = { email: `${n}@kept.example` }
        await writePerson(db.short, project.id, `stays ${(n % 300) * 3}`, properties, false)
        done.changed += 1
      }),
      ...[1, 2].map(() =>
        again(async () => {
          done.indexed += await indexSearchTail(db, { ...segments, partPersons: 7, seconds: 0.1 })
          await sleep(1)
        }),
      ),
    ]
    const pages = async () => {
      const [rounds, changed, indexed] = byDepth([4, 200, 500], [12, 600, 1_500])
      for (let round = 0; round < rounds || done.changed < changed || done.indexed < indexed; ) {
        round++
        for (const term of ['kept person', 'stays', 't', 'kept person 89']) {
          const seen = await allPages(db, project.id, term, 23)
          expect([...seen].sort(byIdDescending), term).toEqual(seen)
          expect(new Set(seen).size, term).toBe(seen.length)
          const matching = stays.filter(({ fields }) => fields.some((one) => one.includes(term)))
          expect(matching.length).toBeGreaterThan(0)
          const missed = matching.filter(({ id }) => !seen.includes(id))
          expect(missed, term).toEqual([])
        }
      }
    }
    await pages().finally(() => {
      isOver = true
      return Promise.all(background)
    })
    await index(db, project.id)
    await compare(db, project.id, ['kept person', 'stays', 't', 'anybody', 'kept.example', 'zzz'])
  })

  test('a project that loses most of its persons keeps few segments', async ({ db, project }) => {
    const first = byDepth(800, 1_600)
    const seeds = (from: number, count: number) =>
      Array.from({ length: count }, (_, n) => population(from + n, 4_000))
    const small = { ...segments, segmentPersons: first / 40 }
    await create(db, project.id, seeds(0, first))
    await index(db, project.id, small)
    await db.sql`
      delete from persons where project_id = ${project.id} and mod(id, 1048576) % 20 > 0`
    const before = await segmentsOf(db, project.id)
    await create(db, project.id, seeds(first, first * 0.75))
    await index(db, project.id, small)
    // Three quarters as many persons were added: as many segments more, if none had been joined.
    expect(await segmentsOf(db, project.id)).toBeLessThan(before * 1.2)
    await compare(db, project.id, some(1))
  })
})

const byIdDescending = (one: string, other: string) => (BigInt(one) < BigInt(other) ? 1 : -1)

async function allPages(db: Db, project: number, term: string, limit: number): Promise<string[]> {
  const seen: string[] = []
  for (let page = limit; page === limit; ) {
    const rows = await searchPersons(db.sql, project, term, seen.at(-1) ?? null, limit, tuning)
    seen.push(...rows.map(({ id }) => id))
    page = rows.length
  }
  return seen
}

async function segmentsOf(db: Db, project: number): Promise<number> {
  const [row] = await db.sql<{ count: string }>`
    select count(*) from search_segments where project_id = ${project}`
  return Number(row?.count)
}

describe('the index step', () => {
  test('gives every person one segment, however many processes do it', async ({ db, project }) => {
    await create(
      db,
      project.id,
      Array.from({ length: 1_000 }, (_, n) => population(n, 1_000)),
    )
    await Promise.all([1, 2, 3, 4, 5].map(() => index(db, project.id)))
    const [given] = await db.sql<{ persons: string }>`
      select sum(persons) as persons from search_segments where project_id = ${project.id}`
    expect(given?.persons).toBe('1000')
    const misplaced = await db.sql`
      select from person_search as person
      where project_id = ${project.id} and segment is distinct from (
        select segment from search_segments
        where project_id = ${project.id} and first_id <= person.person_id
        order by first_id desc limit 1)`
    expect(misplaced).toHaveLength(0)
  })

  test('waits for no lock, and indexes later what it skipped', async ({ db, project }) => {
    await create(db, project.id, [{ externalId: 'first' }])
    await index(db, project.id)
    await create(db, project.id, [{ externalId: 'held', name: 'before' }, { externalId: 'free' }])
    await db.begin(async (tx) => {
      await writePerson(tx, project.id, 'held', { name: 'after' }, false)
      expect(await indexSearchTail(db, segments)).toBe(1)
      expect(await searchPersons(db.sql, project.id, 'before', null, 9)).toHaveLength(1)
      expect(await searchPersons(db.sql, project.id, 'after', null, 9)).toHaveLength(0)
    })
    expect(await searchPersons(db.sql, project.id, 'after', null, 9)).toHaveLength(1)
    expect(await indexSearchTail(db, segments)).toBe(1)
    expect(await searchPersons(db.sql, project.id, 'after', null, 9)).toHaveLength(1)
  })

  test('holds up no request that creates a person', async ({ db, project }) => {
    await create(db, project.id, [{ externalId: 'first' }])
    await db.begin(async (tx) => {
      const [row] = await tx<{ given: number }>`
        select search_index_part(${project.id}, 10, 10, 100) as given`
      expect(row?.given).toBe(1)
      await create(db, project.id, [{ externalId: 'second' }])
      expect(await searchPersons(db.sql, project.id, 's', null, 9)).toHaveLength(2)
    })
  })

  test('leaves small projects alone', async ({ db, project }) => {
    await create(
      db,
      project.id,
      Array.from({ length: 40 }, (_, n) => ({ externalId: `u${n}` })),
    )
    const limits = { ...segments, smallProjectPersons: 41 }
    for (let call = 0; call < 5; call++) await indexSearchTail(db, limits)
    expect(await segmentsOf(db, project.id)).toBe(0)
    await create(db, project.id, [{ externalId: 'u41' }])
    await index(db, project.id, limits)
    expect(await segmentsOf(db, project.id)).toBe(1)
  })
})

describe('what a search reads does not grow with the project', () => {
  const classes: [string, number, string[]][] = [
    ['one person or nobody', 100, ['ana.smith1990@', 'user_1234', 'absent', 'q~', '☂', '9999999']],
    ['frequent texts', 600, ['a', '@', 'gmail', 'user', 'ma', '.', '1', 'com']],
    ['names', 500, ['hodkiewicz7', 'mary hodkiewicz', 'zoë', '三上', "o'brien", '%', 'ΣΣ']],
    ['texts of the oldest only', 130, ['oldcorp', '@oldcorp.example', '7@oldcorp']],
    ['short beginnings of ids', 130, ['_2', 'r_2', '_9']],
    ['texts of few', 500, ['one percent', 'per mille', 'qzx']],
  ]

  test('nor with the depth of the page', async ({ db, project, address }) => {
    const total = 4_000
    await create(
      db,
      project.id,
      Array.from({ length: total }, (_, n) => population(n, total)),
    )
    await index(db, project.id, wholeSegments)
    // As autovacuum does after so many rows: a connection may have planned while there were few, and
    // by what PostgreSQL knew of the index then. It takes seconds on a busy machine, so on a connection
    // without limits.
    const { sql, end } = await connectOne(address)
    await sql`vacuum (analyze) persons, person_search`
    await end()
    const known = await everybody(db, project.id)
    for (const [name, most, texts] of classes) {
      for (const term of texts) {
        for (const cursor of [null, known[Math.floor(total / 3)]?.id, known[total - 400]?.id]) {
          const read = await rowsRead(db, project.id, term, cursor ?? null)
          expect(read.scans, `tables scanned for ${term}`).toBe(0)
          expect(read.rows, `${name}: ${term} before ${cursor}`).toBeLessThan(most)
        }
      }
    }
  })
})

/** How many rows one search fetched, and how many whole tables it scanned. */
function rowsRead(db: Db, project: number, term: string, beforeId: string | null) {
  return db.begin(async (tx) => {
    const count = async () => {
      const [row] = await tx<{ rows: number; scans: number }>`
        select sum(idx_tup_fetch + seq_tup_read)::integer as rows, sum(seq_scan)::integer as scans
        from pg_stat_xact_user_tables where relname in ('persons', 'person_search')`
      return row ?? { rows: Number.NaN, scans: Number.NaN }
    }
    const before = await count()
    await searchPersons(tx, project, term, beforeId, 51, tuning)
    const after = await count()
    return { rows: after.rows - before.rows, scans: after.scans - before.scans }
  })
}
