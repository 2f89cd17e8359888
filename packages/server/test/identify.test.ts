import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IdentityProofs } from '@lethe/contract/dashboard-projects.ts'
import { exportJWK, exportPKCS8, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import { describe, expect } from 'vitest'
import {
  createIdentitySecret,
  isProven,
  readIdentityRules,
  readIdentitySecrets,
} from '../src/projects/identity.ts'
import {
  addIdentityKey,
  listIdentityKeys,
  removeIdentityKey,
} from '../src/projects/identity-keys.ts'
import { deleteProjectSecrets } from '../src/projects/secrets-store.ts'
import { updateProjectSettings } from '../src/projects/settings-store.ts'
import { countBrowserKeys } from '../src/recordings/browser-keys.ts'
import { expireRecordings } from '../src/retention/retention.ts'
import type { Db } from '../src/sql.ts'
import { connectOne } from '../src/sql.ts'
import { type Answer, newProject } from './fixtures.ts'
import { blobKeys, startIngesting, test, waitUntilBlocked } from './recordings-fixtures.ts'

/** What a response is made of, whose bytes tell nothing apart. */
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
  test('stays linked to one person: another person gets a new browser, and nothing is written', async ({
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

  test('identified as two persons at once is linked to one of them', async ({
    ingesting,
    db,
    project,
  }) => {
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
  test('identify responds, byte for byte, as for somebody new and somebody known', async ({
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

    // Nothing was written: the browser is nobody's, and free for the next identify.
    expect(await linkOf(db, project.id, leaving.browserId)).toBeUndefined()
    expect((await ingesting.chunk(leaving)).status).toBe(200)
    expect((await ingesting.identify(leaving.browserId, 'somebody else')).json.next).toBe(
      'continue',
    )
    expect(await linkOf(db, project.id, leaving.browserId)).toBe('somebody else')
  })

  test('a browser of somebody else gets the same response as always', async ({ ingesting }) => {
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

  test('its own browsers record nothing from the DELETE on: no session, chunk or identify', async ({
    ingesting,
  }) => {
    const { browserId, sessionId } = await ingesting.start()
    await ingesting.identify(browserId, 'leaving')
    await ingesting.chunk({ browserId, sessionId, number: 0 })
    await ingesting.send('/v1/persons/leaving', { method: 'DELETE' })
    const started = await ingesting.ingest('start', { browserId })
    expect([started.status, started.json.next]).toEqual([410, 'new_browser'])
    const chunk = await ingesting.chunk({ browserId, sessionId, number: 1 })
    expect([chunk.status, chunk.json.next]).toEqual([410, 'new_browser'])
    const { status, json } = await ingesting.identify(browserId, 'leaving')
    expect([status, json.next]).toEqual([410, 'new_browser'])
  })
})

describe('identify and a deletion at once', () => {
  test('end with the browser refused, or linked to nobody', async ({ ingesting, db, project }) => {
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
      const isLinked = (await linkOf(db, project.id, browserId)) === name
      const { status } = await ingesting.ingest('start', { browserId })
      expect(status).toBe(isLinked ? 410 : 200)
      seen.add(isLinked ? 'linked, then refused' : 'ignored')
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
    expect(await linkOf(db, project.id, browserId)).toBe('ada')
    expect((await ingesting.ingest('start', { browserId })).status).toBe(410)
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

describe('where a project proves its user ids', () => {
  const hashOf = (userId: string, key: string) =>
    createHmac('sha256', key).update(userId).digest('hex')
  const tokenOf = (claims: JWTPayload, key: string, alg = 'HS256') =>
    new SignJWT(claims).setProtectedHeader({ alg }).sign(Buffer.from(key))
  const inAnHour = () => Math.floor(Date.now() / 1_000) + 3_600

  test('only the right proof identifies', async ({ ingesting, recordings, db, project }) => {
    const { masterKeys } = recordings.browserKeys
    const secret = await createIdentitySecret(db.sql, masterKeys, project.id)
    const { browserId } = await ingesting.start()
    const exp = inAnHour()
    const { privateKey } = await generateKeyPair('EdDSA')
    const none = `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify({ sub: 'ada', exp }))}.`
    const wrong = [
      undefined,
      '',
      'x',
      hashOf('grace', secret),
      hashOf('ada', 'another'),
      hashOf('ada', secret).slice(0, -2),
      `${hashOf('ada', secret)}00`,
      'g'.repeat(64),
      await tokenOf({ sub: 'grace', exp }, secret),
      await tokenOf({ sub: 'ada', exp: exp - 7_200 }, secret),
      await tokenOf({ sub: 'ada' }, secret),
      await tokenOf({ exp }, secret),
      await tokenOf({ sub: 'ada', exp }, 'another'.repeat(8)),
      await tokenOf({ sub: 'ada', exp }, secret, 'HS512'),
      await new SignJWT({ sub: 'ada', exp }).setProtectedHeader({ alg: 'EdDSA' }).sign(privateKey),
      none,
    ]
    for (const userHash of wrong) {
      const body = { browserId, userId: 'ada', userHash }
      const { status, json } = await ingesting.ingest('identify', body)
      // The page goes on recording: it is the identification that was refused.
      expect([status, json.error.code, json.next]).toEqual([403, 'forbidden', 'continue'])
    }
    expect((await ingesting.send('/v1/persons/ada')).status).toBe(404)
    const hash = hashOf('ada', secret)
    const token = await tokenOf({ sub: 'ada', exp }, secret)
    for (const userHash of [hash, hash.toUpperCase(), token]) {
      const { status } = await ingesting.ingest('identify', { browserId, userId: 'ada', userHash })
      expect(status).toBe(200)
    }
    expect(await linkOf(db, project.id, browserId)).toBe('ada')
  })

  test('two secrets work at once, and an older one ends', async ({ recordings, db, project }) => {
    const { masterKeys } = recordings.browserKeys
    const create = async () => {
      // Of two that are created in one millisecond neither is the newer one.
      await sleep(2)
      return createIdentitySecret(db.sql, masterKeys, project.id)
    }
    const read = () => readIdentitySecrets(db, masterKeys, project.id)
    const first = await create()
    const second = await create()
    expect(await read()).toEqual([second, first])
    const third = await create()
    expect(await read()).toEqual([third, second])
    await deleteProjectSecrets(db.sql, project.id, 'identity', 1)
    expect(await read()).toEqual([third])
    const isRight = async (proof: string) =>
      isProven(await readIdentityRules(db, masterKeys, project.id), 'ada', proof)
    expect(await isRight(hashOf('ada', third))).toBe(true)
    expect(await isRight(hashOf('ada', second))).toBe(false)
    await deleteProjectSecrets(db.sql, project.id, 'identity', 0)
    expect(await read()).toEqual([])
  })

  test('a public key takes EdDSA tokens, two keys work at once, and one that ended does not', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    const { masterKeys } = recordings.browserKeys
    const exp = inAnHour()
    const isRight = async (proof: string) =>
      isProven(await readIdentityRules(db, masterKeys, project.id), 'ada', proof)
    const pairs = await Promise.all([1, 2].map(() => generateKeyPair('EdDSA')))
    const tokens = []
    for (const { privateKey, publicKey } of pairs) {
      const signed = new SignJWT({ sub: 'ada', exp }).setProtectedHeader({ alg: 'EdDSA' })
      tokens.push(await signed.sign(privateKey))
      await addIdentityKey(db.sql, project.id, await exportSPKI(publicKey))
    }
    const [first = '', second = ''] = tokens
    expect([await isRight(first), await isRight(second)]).toEqual([true, true])
    const { privateKey } = pairs[0] as (typeof pairs)[0]
    const signed = (claims: JWTPayload) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA' }).sign(privateKey)
    const [newer, older] = await listIdentityKeys(db.sql, project.id)
    const asSecret = older?.publicKey as string
    for (const wrong of [
      await signed({ sub: 'grace', exp }),
      await signed({ sub: 'ada' }),
      await signed({ sub: 'ada', exp: exp - 7_200 }),
      await tokenOf({ sub: 'ada', exp }, asSecret.padEnd(64, '0')),
      await new SignJWT({ sub: 'ada', exp })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(asSecret, 'base64url')),
      await new SignJWT({ sub: 'ada', exp })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(await exportSPKI((pairs[0] as (typeof pairs)[0]).publicKey))),
      hashOf('ada', asSecret),
    ]) {
      expect(await isRight(wrong)).toBe(false)
    }
    await removeIdentityKey(db.sql, project.id, older?.id as string)
    expect([await isRight(first), await isRight(second)]).toEqual([false, true])
    expect(await listIdentityKeys(db.sql, project.id)).toEqual([newer])

    const { browserId } = await ingesting.start()
    const identified = (userHash: string) =>
      ingesting.ingest('identify', { browserId, userId: 'ada', userHash })
    expect((await identified(first)).status).toBe(403)
    expect((await identified(second)).status).toBe(200)
  })

  test('only tokens, or only EdDSA tokens, are taken where the project says so', async ({
    recordings,
    db,
    project,
  }) => {
    const { masterKeys } = recordings.browserKeys
    const secret = await createIdentitySecret(db.sql, masterKeys, project.id)
    const { publicKey, privateKey } = await generateKeyPair('EdDSA')
    await addIdentityKey(db.sql, project.id, JSON.stringify(await exportJWK(publicKey)))
    const claims = { sub: 'ada', exp: inAnHour() }
    const proofs = [
      hashOf('ada', secret),
      await tokenOf(claims, secret),
      await new SignJWT(claims).setProtectedHeader({ alg: 'Ed25519' }).sign(privateKey),
    ]
    const taken = async (identityProofs: IdentityProofs) => {
      await updateProjectSettings(db.sql, project.id, { identityProofs })
      const rules = await readIdentityRules(db, masterKeys, project.id)
      return Promise.all([...proofs, undefined].map((proof) => isProven(rules, 'ada', proof)))
    }
    expect(await taken('any')).toEqual([true, true, true, false])
    expect(await taken('tokens')).toEqual([false, true, true, false])
    expect(await taken('eddsa')).toEqual([false, false, true, false])
    // Nobody is let in by what is no longer there.
    const [key] = await listIdentityKeys(db.sql, project.id)
    await expect(
      db.begin((tx) => removeIdentityKey(tx, project.id, key?.id as string)),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    await deleteProjectSecrets(db.sql, project.id, 'identity', 0)
    expect(await taken('tokens')).toEqual([false, false, true, false])
    await removeIdentityKey(db.sql, project.id, key?.id as string)
    expect(await taken('tokens')).toEqual([false, false, false, false])
    expect(await taken('any')).toEqual([true, true, true, true])
    await expect(taken('eddsa')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('an invalid key, a private key, another kind of key and a third key are refused', async ({
    db,
    project,
  }) => {
    const add = (text: string) => db.begin((tx) => addIdentityKey(tx, project.id, text))
    const { privateKey, publicKey } = await generateKeyPair('EdDSA', { extractable: true })
    const rsa = await generateKeyPair('RS256')
    for (const text of [
      'x',
      '{}',
      '{',
      'null',
      await exportPKCS8(privateKey),
      JSON.stringify(await exportJWK(privateKey)),
      await exportSPKI(rsa.publicKey),
      JSON.stringify({ ...(await exportJWK(publicKey)), crv: 'X25519' }),
    ]) {
      await expect(add(text)).rejects.toMatchObject({ code: 'invalid_request' })
    }
    for (const text of [await exportSPKI(publicKey), JSON.stringify(await exportJWK(publicKey))]) {
      await add(text)
    }
    expect(await listIdentityKeys(db.sql, project.id)).toHaveLength(1)
    const others = await Promise.all([1, 2].map(() => generateKeyPair('EdDSA')))
    const added = await Promise.allSettled(
      others.map(async (pair) => add(await exportSPKI(pair.publicKey))),
    )
    expect(added.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  })

  test('a secret is stored wrapped', async ({ recordings, db, project }) => {
    const { masterKeys } = recordings.browserKeys
    const created = await createIdentitySecret(db.sql, masterKeys, project.id)
    const stored = await db.sql<{ row: string }>`
      select to_jsonb(s)::text as row from project_secrets s
      union all
      select to_jsonb(p)::text from projects p`
    for (const { row } of stored) expect(row).not.toMatch(new RegExp(created))
  })

  test('a wrong proof is refused alike, whether or not the person exists, for any browser', async ({
    ingesting,
    recordings,
    db,
    project,
  }) => {
    await ingesting.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
    await createIdentitySecret(db.sql, recordings.browserKeys.masterKeys, project.id)
    const { browserId } = await ingesting.start()
    const texts = []
    for (const [browser, userId] of [
      [browserId, 'ada'],
      [browserId, 'nobody'],
      [randomUUID(), 'ada'],
    ]) {
      const body = { browserId: browser, userId, userHash: hashOf('x', 'y') }
      const { text } = await ingesting.ingest('identify', body)
      texts.push(text.replace(/"requestId":"[^"]+"/, ''))
    }
    expect(new Set(texts).size).toBe(1)
  })
})

describe('a person with as many browsers as it may have', () => {
  const limits = { perAddress: 0, perProject: 0, browsersPerPerson: 2 }

  test('gets no further one: it is told to stop, and what it recorded is deleted', async ({
    recordings,
    address,
    db,
    project,
  }) => {
    const ingesting = await startIngesting(recordings, address, project, { ingestLimits: limits })
    const browsers = [await ingesting.start(), await ingesting.start()]
    for (const { browserId } of browsers) {
      expect((await ingesting.identify(browserId, 'ada')).json.next).toBe('continue')
    }
    const further = await ingesting.start()
    await ingesting.chunk(further)
    const refused = await ingesting.identify(further.browserId, 'ada')
    expect([refused.status, refused.json.next]).toEqual([200, 'stop'])

    // From then on it records nothing, and what it sent cannot be opened.
    expect((await ingesting.chunk({ ...further, number: 1 })).status).toBe(410)
    expect((await ingesting.ingest('start', { browserId: further.browserId })).status).toBe(410)
    expect((await ingesting.identify(further.browserId, 'ada')).status).toBe(410)
    expect(await countBrowserKeys(db.sql, project.id, [further.browserId])).toBe(0)
    const listed = await ingesting.send('/v1/persons/ada/sessions')
    expect(listed.json.sessions.map(({ id }: { id: string }) => id).sort()).toEqual(
      browsers.map(({ sessionId }) => sessionId).sort(),
    )
    expect(await expireRecordings(recordings)).toMatchObject({ sessions: 1, browsers: 1 })
    expect(await blobKeys(recordings)).toEqual([])
    const [left] = await db.sql`
      select from browsers where project_id = ${project.id} and id = ${further.browserId}`
    expect(left).toBeUndefined()

    // Its own browsers go on, and other persons have room.
    expect((await ingesting.identify(browsers[0]!.browserId, 'ada')).json.next).toBe('continue')
    expect((await ingesting.chunk({ ...browsers[0]!, number: 5 })).status).toBe(200)
    const other = await ingesting.start()
    expect((await ingesting.identify(other.browserId, 'grace')).json.next).toBe('continue')
    await ingesting.close()
  })

  test('has room again when the last recording of one of them is gone', async ({
    recordings,
    address,
    db,
    project,
  }) => {
    const ingesting = await startIngesting(recordings, address, project, { ingestLimits: limits })
    const first = await ingesting.start()
    await ingesting.identify(first.browserId, 'ada')
    const second = await ingesting.start()
    await ingesting.identify(second.browserId, 'ada')
    await db.sql`
      update sessions set started_at = later(started_at, -31 * 86400000.0)
      where project_id = ${project.id} and id = ${first.sessionId}`
    await expireRecordings(recordings)
    const third = await ingesting.start()
    expect((await ingesting.identify(third.browserId, 'ada')).json.next).toBe('continue')
    await ingesting.close()
  })
})
