import { createHmac, randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import type { Db } from '../src/sql.ts'
import { connectOne } from '../src/sql.ts'
import { type Answer, newProject } from './fixtures.ts'
import { test, waitUntilBlocked } from './recordings-fixtures.ts'

/** What an answer is made of, whose bytes tell nothing apart. */
function bytesOf({ status, text, headers }: Answer): string {
  const names = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')
  return JSON.stringify([status, text, names])
}

async function linkOf(db: Db, projectId: number, browserId: string): Promise<string | undefined> {
  const [row] = await db.sql<{ externalId: string }>`
    select p.external_id as "externalId"
    from person_browsers l
    join persons p on p.project_id = l.project_id and p.id = l.person_id
    where l.project_id = ${projectId} and l.browser_id = ${browserId}`
  return row?.externalId
}

describe('the first identify', () => {
  test('creates the person, without properties, where a search finds it', async ({ ingesting }) => {
    const { browserId } = await ingesting.start()
    const answer = await ingesting.identify(browserId, 'Ada')
    expect([answer.status, answer.text]).toEqual([200, '{"next":"continue"}'])
    const { json } = await ingesting.send('/v1/persons/Ada')
    expect(json.person).toMatchObject({ externalId: 'Ada', properties: {} })
    const found = await ingesting.send('/v1/persons?search=aDA')
    expect(found.json.persons).toHaveLength(1)
  })

  test('leaves a known person as it is', async ({ ingesting }) => {
    await ingesting.send('/v1/persons', {
      method: 'POST',
      body: { externalId: 'ada', properties: { name: 'Ada' } },
    })
    const before = await ingesting.send('/v1/persons/ada')
    const { browserId } = await ingesting.start()
    await ingesting.identify(browserId, 'ada')
    expect((await ingesting.send('/v1/persons/ada')).text).toBe(before.text)
  })

  test("makes the whole session the person's, what came before too", async ({ ingesting }) => {
    const started = await ingesting.start()
    await ingesting.chunk(started)
    await ingesting.identify(started.browserId, 'ada')
    const later = await ingesting.start(started.browserId)
    const { json } = await ingesting.send('/v1/persons/ada/sessions')
    expect(
      json.sessions.map(({ id, beforeIdentification }: never) => [id, beforeIdentification]),
    ).toEqual([
      [later.sessionId, false],
      [started.sessionId, true],
    ])
  })

  test('may be repeated', async ({ ingesting, db, project }) => {
    const { browserId } = await ingesting.start()
    const answers = []
    for (let i = 0; i < 3; i++) answers.push(await ingesting.identify(browserId, 'ada'))
    expect(new Set(answers.map(bytesOf)).size).toBe(1)
    expect(await linkOf(db, project.id, browserId)).toBe('ada')
  })

  test('takes user ids as they are, up to 200 characters', async ({ ingesting, db, project }) => {
    for (const userId of ['a', ' ', '.', 'a/b', '😀'.repeat(200), 'null', 'é', 'e\u0301']) {
      const { browserId } = await ingesting.start()
      expect((await ingesting.identify(browserId, userId)).status).toBe(200)
      expect(await linkOf(db, project.id, browserId)).toBe(userId)
    }
    const { browserId } = await ingesting.start()
    for (const userId of ['', '😀'.repeat(201), 'a\u0000b', 7, null]) {
      const { status, json } = await ingesting.ingest('identify', { browserId, userId })
      expect([status, json.next]).toEqual([400, 'continue'])
    }
    const surrogate = await ingesting.ingest(
      'identify',
      `{"browserId":"${browserId}","userId":"\\ud800"}`,
    )
    expect(surrogate.status).toBe(400)
    expect(await linkOf(db, project.id, browserId)).toBeUndefined()
  })

  test('of a hundred browsers at once makes one person', async ({ ingesting, db, project }) => {
    const browsers = []
    for (let i = 0; i < 100; i++) browsers.push(await ingesting.start())
    const answers = await Promise.all(
      browsers.map(({ browserId }) => ingesting.identify(browserId, 'ada')),
    )
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
    const [count] = await db.sql`
      select count(distinct person_id)::int as persons, count(*)::int as links
      from person_browsers where project_id = ${project.id}`
    expect(count).toEqual({ persons: 1, links: 100 })
  })
})

describe('a browser', () => {
  test("is one person's for ever: another gets a new browser, and nothing is written", async ({
    ingesting,
    db,
    project,
  }) => {
    const { browserId } = await ingesting.start()
    await ingesting.identify(browserId, 'ada')
    const { status, text } = await ingesting.identify(browserId, 'grace')
    expect([status, text]).toEqual([200, '{"next":"new_browser"}'])
    expect(await linkOf(db, project.id, browserId)).toBe('ada')
    expect((await ingesting.send('/v1/persons/grace')).status).toBe(404)
  })

  test("identified as two at once is one of them's", async ({ ingesting, db, project }) => {
    for (let round = 0; round < 20; round++) {
      const { browserId } = await ingesting.start()
      const names = [`ada ${round}`, `grace ${round}`]
      const answers = await Promise.all(names.map((name) => ingesting.identify(browserId, name)))
      const nexts = answers.map((answer) => answer.json.next)
      expect(nexts.toSorted()).toEqual(['continue', 'new_browser'])
      const winner = names[nexts.indexOf('continue')]
      expect(await linkOf(db, project.id, browserId)).toBe(winner)
      const loser = names[nexts.indexOf('new_browser')]!
      expect((await ingesting.send(`/v1/persons/${encodeURIComponent(loser)}`)).status).toBe(404)
    }
  })

  test("that is unknown, retired or another project's identifies nobody", async ({
    ingesting,
    db,
    project,
  }) => {
    const other = await newProject(db)
    const { json: foreign } = await ingesting.ingest('start', {}, { key: other.publicKey })
    const retired = await ingesting.start()
    await db.sql`
      update browsers set retired = true
      where project_id = ${project.id} and id = ${retired.browserId}`
    for (const browserId of [randomUUID(), 'x', foreign.browserId, retired.browserId]) {
      const { status, json } = await ingesting.identify(browserId, 'ada')
      expect([status, json.error.code, json.next]).toEqual([410, 'browser_retired', 'new_browser'])
    }
    expect((await ingesting.send('/v1/persons/ada')).status).toBe(404)
  })
})

describe('while the person is being deleted', () => {
  test('identify answers, byte for byte, as for somebody new and somebody known', async ({
    ingesting,
    db,
    project,
  }) => {
    const before = await ingesting.start()
    await ingesting.identify(before.browserId, 'leaving')
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'known' } })
    await ingesting.send('/v1/persons/leaving', { method: 'DELETE' })

    const [leaving, known, unheard] = [
      await ingesting.start(),
      await ingesting.start(),
      await ingesting.start(),
    ]
    const answers = [
      await ingesting.identify(leaving.browserId, 'leaving'),
      await ingesting.identify(known.browserId, 'known'),
      await ingesting.identify(unheard.browserId, 'unheard'),
    ]
    expect(new Set(answers.map(bytesOf)).size).toBe(1)
    expect(answers[0]!.status).toBe(200)

    // Nothing was written: the browser is nobody's, and free for whoever identifies next.
    expect(await linkOf(db, project.id, leaving.browserId)).toBeUndefined()
    expect((await ingesting.chunk(leaving)).status).toBe(200)
    expect((await ingesting.identify(leaving.browserId, 'somebody else')).json.next).toBe(
      'continue',
    )
    expect(await linkOf(db, project.id, leaving.browserId)).toBe('somebody else')
  })

  test('a browser of somebody else is told the same as at any time', async ({ ingesting }) => {
    const mine = await ingesting.start()
    await ingesting.identify(mine.browserId, 'me')
    await ingesting.identify((await ingesting.start()).browserId, 'leaving')
    const asKnown = await ingesting.identify(mine.browserId, 'leaving')
    await ingesting.send('/v1/persons/leaving', { method: 'DELETE' })
    const asLeaving = await ingesting.identify(mine.browserId, 'leaving')
    const asUnknown = await ingesting.identify(mine.browserId, 'nobody')
    expect(bytesOf(asLeaving)).toBe(bytesOf(asKnown))
    expect(bytesOf(asUnknown)).toBe(bytesOf(asKnown))
    expect(asKnown.json.next).toBe('new_browser')
  })

  test('its own browsers are retired, an identify that was on its way too', async ({
    ingesting,
  }) => {
    const { browserId } = await ingesting.start()
    await ingesting.identify(browserId, 'leaving')
    await ingesting.send('/v1/persons/leaving', { method: 'DELETE' })
    const { status, json } = await ingesting.identify(browserId, 'leaving')
    expect([status, json.next]).toEqual([410, 'new_browser'])
  })
})

describe('identify and a deletion at once', () => {
  test("end with the browser retired, or nobody's", async ({ ingesting, db, project }) => {
    const seen = new Set<string>()
    for (let round = 0; round < 40; round++) {
      const name = `person-${round}`
      await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: name } })
      const { browserId } = await ingesting.start()
      const pause = (milliseconds: number) =>
        new Promise((resolve) => setTimeout(resolve, milliseconds))
      const [identified, deleted] = await Promise.all([
        pause(round % 4).then(() => ingesting.identify(browserId, name)),
        pause((round >> 2) % 4).then(() =>
          ingesting.send(`/v1/persons/${name}`, { method: 'DELETE' }),
        ),
      ])
      expect([identified.status, identified.text]).toEqual([200, '{"next":"continue"}'])
      expect(deleted.status).toBe(202)
      const [browser] = await db.sql<{ retired: boolean }>`
        select retired from browsers where project_id = ${project.id} and id = ${browserId}`
      const isLinked = (await linkOf(db, project.id, browserId)) === name
      expect(browser?.retired).toBe(isLinked)
      seen.add(isLinked ? 'linked, then retired' : 'ignored')
    }
    expect(seen.size).toBeGreaterThan(0)
  })

  test('wait for each other: an identify that came first is in the erased set', async ({
    ingesting,
    db,
    address,
    project,
  }) => {
    const { browserId } = await ingesting.start()
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    // Holds the browser, so that identify has the person and waits.
    const holder = await connectOne(address)
    await holder.client.query('begin')
    await holder.sql`
      select from browsers where project_id = ${project.id} and id = ${browserId} for update`
    const identifying = ingesting.identify(browserId, 'ada')
    await waitUntilBlocked(db, 1)
    const deleting = ingesting.send('/v1/persons/ada', { method: 'DELETE' })
    await waitUntilBlocked(db, 2)
    await holder.client.query('commit')
    await holder.end()
    expect([(await identifying).status, (await deleting).status]).toEqual([200, 202])
    const [browser] = await db.sql`
      select retired from browsers where project_id = ${project.id} and id = ${browserId}`
    expect(browser).toEqual({ retired: true })
  })

  test('wait for each other: an identify that came second writes nothing', async ({
    ingesting,
    db,
    address,
    project,
  }) => {
    const { browserId } = await ingesting.start()
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    const holder = await connectOne(address)
    await holder.client.query('begin')
    await holder.sql`
      select from persons where project_id = ${project.id} and external_id = 'ada' for update`
    const deleting = ingesting.send('/v1/persons/ada', { method: 'DELETE' })
    await waitUntilBlocked(db, 1)
    const identifying = ingesting.identify(browserId, 'ada')
    await waitUntilBlocked(db, 2)
    await holder.client.query('commit')
    await holder.end()
    expect([(await deleting).status, (await identifying).text]).toEqual([
      202,
      '{"next":"continue"}',
    ])
    expect(await linkOf(db, project.id, browserId)).toBeUndefined()
    expect((await ingesting.chunk({ ...(await ingesting.start(browserId)) })).status).toBe(200)
  })
})

describe('where a project signs its user ids', () => {
  const secret = 'a secret of the project'
  const sign = (userId: string, key = secret) =>
    createHmac('sha256', key).update(userId).digest('hex')

  test('only the right signature identifies', async ({ ingesting, db, project }) => {
    await db.sql`update projects set identify_secret = ${secret} where id = ${project.id}`
    const { browserId } = await ingesting.start()
    const wrong = [
      undefined,
      '',
      'x',
      sign('grace'),
      sign('ada', 'another'),
      sign('ada').slice(0, -2),
      `${sign('ada')}00`,
      'g'.repeat(64),
    ]
    for (const userHash of wrong) {
      const { status, json } = await ingesting.ingest('identify', {
        browserId,
        userId: 'ada',
        userHash,
      })
      // The page goes on recording: it is the identification that was refused.
      expect([status, json.error.code, json.next]).toEqual([403, 'forbidden', 'continue'])
    }
    expect((await ingesting.send('/v1/persons/ada')).status).toBe(404)
    for (const userHash of [sign('ada'), sign('ada').toUpperCase()]) {
      const { status } = await ingesting.ingest('identify', { browserId, userId: 'ada', userHash })
      expect(status).toBe(200)
    }
    expect(await linkOf(db, project.id, browserId)).toBe('ada')
  })

  test('a wrong signature is refused alike, whoever exists and whatever the browser', async ({
    ingesting,
    db,
    project,
  }) => {
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    await db.sql`update projects set identify_secret = ${secret} where id = ${project.id}`
    const { browserId } = await ingesting.start()
    const texts = []
    for (const [browser, userId] of [
      [browserId, 'ada'],
      [browserId, 'nobody'],
      [randomUUID(), 'ada'],
    ]) {
      const body = { browserId: browser, userId, userHash: sign('x') }
      const { text } = await ingesting.ingest('identify', body)
      texts.push(text.replace(/"requestId":"[^"]+"/, ''))
    }
    expect(new Set(texts).size).toBe(1)
  })
})
