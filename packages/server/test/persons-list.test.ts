import { createPerson } from '@lethe/contract/person.ts'
import { describe, expect } from 'vitest'
import { openClock } from './erasure-fixtures.ts'
import { newProject, type Service, test } from './fixtures.ts'

async function make(service: Service, externalIds: string[], properties = {}) {
  for (const externalId of externalIds) {
    await service.call(createPerson, { body: { externalId, properties } })
  }
}

async function pages(service: Service, query: string, between = async () => {}) {
  const ids: string[] = []
  const lengths: number[] = []
  let cursor: string | null = null
  do {
    const from: string = cursor === null ? '' : `&cursor=${cursor}`
    const { status, json } = await service.send(`/v1/persons?${query}${from}`)
    expect(status).toBe(200)
    ids.push(...json.persons.map((person: { externalId: string }) => person.externalId))
    lengths.push(json.persons.length)
    cursor = json.nextCursor
    await between()
  } while (cursor !== null)
  return { ids, lengths }
}

const numbered = (count: number, prefix = 'p') =>
  Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(3, '0')}`)

describe('200', () => {
  test('an empty project has an empty page', async ({ service }) => {
    const { json } = await service.send('/v1/persons')
    expect(json).toEqual({ persons: [], nextCursor: null })
  })

  test('newest created first, 50 a page, each person as GET shows it', async ({ service }) => {
    const ids = numbered(51)
    await make(service, ids, { name: 'N' })
    const first = (await service.send('/v1/persons')).json
    expect(first.persons.map((person: { externalId: string }) => person.externalId)).toEqual(
      ids.toReversed().slice(0, 50),
    )
    expect(first.persons[0]).toEqual((await service.send('/v1/persons/p050')).json.person)
    expect(first.nextCursor).toEqual(expect.any(String))
    const second = (await service.send(`/v1/persons?cursor=${first.nextCursor}`)).json
    expect(second.persons).toHaveLength(1)
    expect(second.nextCursor).toBeNull()
  })

  test('a page is full unless it is the last, and a full last page has no nextCursor', async ({
    service,
  }) => {
    const ids = numbered(12)
    await make(service, ids)
    for (const limit of [1, 3, 4, 5, 12, 100]) {
      const walk = await pages(service, `limit=${limit}`)
      expect(walk.ids).toEqual(ids.toReversed())
      expect(walk.lengths).toHaveLength(Math.ceil(12 / limit))
      expect(walk.lengths.slice(0, -1).every((length) => length === limit)).toBe(true)
    }
  })

  test('the limit may change from page to page', async ({ service }) => {
    await make(service, numbered(10))
    const { nextCursor } = (await service.send('/v1/persons?limit=4')).json
    const rest = (await service.send(`/v1/persons?limit=100&cursor=${nextCursor}`)).json
    expect([rest.persons.length, rest.nextCursor]).toEqual([6, null])
  })

  test('changes of a person never move it', async ({ service }) => {
    await make(service, ['first', 'second'])
    await service.send('/v1/persons/first', { method: 'PATCH', body: { properties: { a: 1 } } })
    expect((await pages(service, 'limit=1')).ids).toEqual(['second', 'first'])
  })

  test('while persons come and go each stable person is seen exactly once', async ({
    service,
    db,
    project,
  }) => {
    const stable = numbered(30, 'stable')
    const passing = numbered(30, 'passing')
    for (let i = 0; i < 30; i++) await make(service, [stable[i] as string, passing[i] as string])
    for (const query of ['limit=7', 'limit=7&search=S']) {
      let round = 0
      const { ids } = await pages(service, query, async () => {
        round++
        await make(service, [`late-s-${query}-${round}`])
        await db.sql`
          delete from persons where (project_id, id) in (
            select project_id, id from persons
            where project_id = ${project.id} and external_id like 'passing%'
            order by random() limit 2)`
      })
      expect(ids.filter((id) => id.startsWith('stable'))).toEqual(stable.toReversed())
      expect(new Set(ids).size).toBe(ids.length)
    }
  })

  test('a cursor outlives the person it points to', async ({ service, db, project }) => {
    await make(service, numbered(6))
    const { persons, nextCursor } = (await service.send('/v1/persons?limit=3')).json
    await db.sql`
      delete from persons
      where project_id = ${project.id} and external_id = ${persons.at(-1).externalId}`
    const rest = (await service.send(`/v1/persons?limit=3&cursor=${nextCursor}`)).json
    expect(rest.persons.map((person: { externalId: string }) => person.externalId)).toEqual([
      'p002',
      'p001',
      'p000',
    ])
  })

  test('persons of one millisecond have an order of their own', async ({
    service,
    db,
    address,
    project,
  }) => {
    const clock = await openClock(address)
    const answers = await Promise.all(
      numbered(40).map((externalId) =>
        service.send('/v1/persons', { method: 'POST', body: { externalId } }),
      ),
    )
    await clock.close()
    expect(answers.every(({ status }) => status === 201)).toBe(true)
    const [row] = await db.sql<{ n: number }>`
      select count(distinct created_at)::int as n from persons where project_id = ${project.id}`
    expect(row?.n).toBe(1)
    const { ids } = await pages(service, 'limit=1')
    expect(new Set(ids).size).toBe(40)
  })

  test('a person being deleted stays in the list', async ({ service }) => {
    await make(service, ['going'])
    await service.send('/v1/persons/going', { method: 'DELETE' })
    expect((await pages(service, 'limit=1')).ids).toEqual(['going'])
  })

  test('externalId is an exact filter', async ({ service }) => {
    await make(service, ['..', 'A', 'a', 'aa'])
    expect((await pages(service, 'externalId=a')).ids).toEqual(['a'])
    expect((await pages(service, `externalId=${encodeURIComponent('..')}`)).ids).toEqual(['..'])
    expect((await pages(service, 'externalId=b')).ids).toEqual([])
  })

  test("another project's persons are in no list and no search", async ({ service, db }) => {
    const other = await newProject(db)
    await service.send('/v1/persons', {
      method: 'POST',
      key: other.secretKey,
      body: { externalId: 'theirs' },
    })
    expect((await pages(service, 'limit=1')).ids).toEqual([])
    expect((await pages(service, 'search=theirs')).ids).toEqual([])
    expect((await pages(service, 'externalId=theirs')).ids).toEqual([])
  })

  test('a page of large persons is whole', async ({ service }) => {
    const properties = { text: 'é'.repeat(100_000) }
    await make(service, numbered(8), properties)
    const { json, headers } = await service.send('/v1/persons')
    expect(json.persons).toHaveLength(8)
    expect(json.persons[3].properties).toEqual(properties)
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect((await service.send('/v1/persons?search=p')).json).toEqual(json)
  })

  test('a page of small and large persons has each in its place', async ({ service }) => {
    const sizes = [1, 16_384, 16_385, 3, 100_000, 16_300, 2]
    for (const size of sizes) {
      const properties = { text: 'x'.repeat(size), sign: '𝄞' }
      await service.call(createPerson, { body: { externalId: `person-${size}`, properties } })
    }
    const { json } = await service.send('/v1/persons')
    expect(
      json.persons.map(
        (one: { externalId: string; properties: { text: string; sign: string } }) => [
          one.externalId,
          one.properties.text.length,
          one.properties.sign,
        ],
      ),
    ).toEqual(sizes.toReversed().map((size) => [`person-${size}`, size, '𝄞']))
    const one = await service.send('/v1/persons/person-100000')
    expect(one.json.person).toEqual(json.persons[2])
    expect(Number(one.headers.get('content-length'))).toBeGreaterThan(100_000)
  })
})

describe('search', () => {
  test('finds text in externalId, name and email, whatever the case, and in nothing else', async ({
    service,
  }) => {
    await service.call(createPerson, {
      body: { externalId: 'one', properties: { name: 'Ada LOVELACE', plan: 'needle' } },
    })
    await service.call(createPerson, {
      body: { externalId: 'two', properties: { email: 'Ada@Example.com' } },
    })
    await service.call(createPerson, {
      body: { externalId: 'ADA-3', properties: { name: 7, email: ['ada'] } },
    })
    await service.call(createPerson, {
      body: { externalId: 'four', properties: { name: { ada: 'ada' } } },
    })
    expect((await pages(service, 'search=aDa')).ids).toEqual(['ADA-3', 'two', 'one'])
    expect((await pages(service, 'search=lovelace')).ids).toEqual(['one'])
    expect((await pages(service, 'search=needle')).ids).toEqual([])
    expect((await pages(service, 'search=%40example.')).ids).toEqual(['two'])
  })

  test('takes % _ \\ and quotes literally', async ({ service }) => {
    await make(service, ['100%', '100x', 'a_b', 'axb', 'back\\slash', "o'brien", 'tab\tbed'])
    for (const [text, found] of [
      ['0%', '100%'],
      ['a_b', 'a_b'],
      ['k\\s', 'back\\slash'],
      ["o'b", "o'brien"],
      ['b\tb', 'tab\tbed'],
    ] as const) {
      expect((await pages(service, `search=${encodeURIComponent(text)}`)).ids).toEqual([found])
    }
  })

  test('a match never spans two fields', async ({ service }) => {
    await service.call(createPerson, {
      body: { externalId: 'ab', properties: { name: 'cd', email: 'ef' } },
    })
    for (const text of [
      'bc',
      'de',
      'abcd',
      'b\ncd',
      'b\n\ncd',
      'b\uffffcd',
      'b\ufffecd',
      '\uffff',
    ]) {
      expect(
        (await pages(service, `search=${encodeURIComponent(text)}`)).ids,
        JSON.stringify(text),
      ).toEqual([])
    }
  })

  test('folds case over all of Unicode', async ({ service }) => {
    const pairs = [
      ['É', 'é'],
      ['ΣΊΣΥΦΟΣ', 'σίσυφος'],
      ['İstanbul', 'istanbul'],
      ['STRASSE', 'straße'],
      ['ДОМ', 'дом'],
      ['ﬁ', 'FI'],
      ['𐐀', '𐐨'],
    ]
    for (const [stored, searched] of pairs as [string, string][]) {
      await make(service, [stored])
      expect((await pages(service, `search=${encodeURIComponent(searched)}`)).ids).toEqual([stored])
    }
  })

  test('follows a changed and a removed name', async ({ service }) => {
    await make(service, ['ada'], { name: 'Before', email: 'kept@example.com' })
    await service.send('/v1/persons/ada', {
      method: 'PATCH',
      body: { properties: { name: 'After' } },
    })
    expect((await pages(service, 'search=before')).ids).toEqual([])
    expect((await pages(service, 'search=after')).ids).toEqual(['ada'])
    expect((await pages(service, 'search=kept')).ids).toEqual(['ada'])
    await service.send('/v1/persons/ada', { method: 'PATCH', body: { properties: { name: null } } })
    expect((await pages(service, 'search=after')).ids).toEqual([])
  })

  test('an empty search is no search', async ({ service }) => {
    await make(service, ['a', 'b'])
    expect((await pages(service, 'search=&limit=1')).ids).toEqual(['b', 'a'])
  })

  test('a search of 200 characters is taken', async ({ service }) => {
    await make(service, ['💩'.repeat(200)])
    expect(
      (await pages(service, `search=${encodeURIComponent('💩'.repeat(200))}`)).ids,
    ).toHaveLength(1)
  })
})

describe('400 invalid_request', () => {
  test('a limit, a cursor, a search or an externalId that is none, or something else', async ({
    service,
  }) => {
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=-1',
      'limit=1.5',
      'limit=abc',
      'limit=',
      'limit=1e1',
      'limit=0x10',
      'limit=%2050',
      'limit=050',
      'limit=1&limit=2',
      'limit=99999999999999999999',
      'cursor=',
      'cursor=abc',
      'cursor=%00',
      `cursor=${'a'.repeat(201)}`,
      'cursor=a&cursor=b',
      `search=${'x'.repeat(201)}`,
      'search=%00',
      'search=a&search=b',
      'search=%e9',
      'search=%zz',
      'externalId=',
      `externalId=${'x'.repeat(201)}`,
      'externalId=a&search=b',
      'unknown=1',
      'Limit=5',
    ]) {
      const answer = await service.send(`/v1/persons?${query}`)
      expect([answer.status, answer.json.error.code], query).toEqual([400, 'invalid_request'])
    }
  })

  test('a cursor of another search, another project, or changed by one character', async ({
    service,
    db,
  }) => {
    await make(service, numbered(4))
    const other = await newProject(db)
    await service.send('/v1/persons', {
      method: 'POST',
      key: other.secretKey,
      body: { externalId: 'x' },
    })
    const { nextCursor } = (await service.send('/v1/persons?limit=2')).json
    const searched = (await service.send('/v1/persons?limit=2&search=p')).json.nextCursor
    const refused = async (path: string, key?: string) => {
      const answer = await service.send(path, key ? { key } : {})
      expect([answer.status, answer.json.error?.code]).toEqual([400, 'invalid_request'])
    }
    await refused(`/v1/persons?search=p&cursor=${nextCursor}`)
    await refused(`/v1/persons?cursor=${searched}`)
    await refused(`/v1/persons?search=q&cursor=${searched}`)
    await refused(`/v1/persons?cursor=${nextCursor}`, other.secretKey)
    for (let i = 0; i < nextCursor.length; i++) {
      const changed = nextCursor[i] === 'A' ? 'B' : 'A'
      await refused(
        `/v1/persons?cursor=${nextCursor.slice(0, i)}${changed}${nextCursor.slice(i + 1)}`,
      )
    }
    for (const extra of ['=', 'A', '%20', '.'])
      await refused(`/v1/persons?cursor=${nextCursor}${extra}`)
  })
})
