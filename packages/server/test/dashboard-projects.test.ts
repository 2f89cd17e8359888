import { generateKeyPairSync } from 'node:crypto'
import { getHome } from '@lethe/contract/dashboard-home.ts'
import { proveIdentity } from '@lethe/contract/dashboard-members.ts'
import {
  addIdentityKey,
  createKey,
  createProject,
  getInstallState,
  listIdentityKeys,
  listKeys,
  makeIdentifySecret,
  removeIdentifySecret,
  removeIdentityKey,
  revokeKey,
  rotateKey,
  updateKey,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { listAuditEntries } from '@lethe/contract/dashboard-system.ts'
import { describe, expect } from 'vitest'
import { password, refusalOf, test } from './dashboard-fixtures.ts'
import { sendRaw } from './fixtures.ts'
import { shiftClock } from './recordings-fixtures.ts'

describe('projects', () => {
  test('are created with two working keys, shown once', async ({ dashboard, db }) => {
    const owner = await dashboard.member('owner')
    const made = (await owner.call(createProject, { body: { name: 'Shop' } })).body
    expect(made.project).toMatchObject({
      name: 'Shop',
      retentionDays: 30,
      identifiedDays: 0,
      masking: 'balanced',
      sampleRate: 1,
      suppressesErased: false,
      hasIdentifySecret: false,
      allowsWithdrawal: false,
      recordsAssets: true,
      identityProofs: 'any',
      needsProof: false,
    })
    const api = await sendRaw(dashboard.url, '/v1/persons', made.secretKey, {})
    expect(api.json.persons).toEqual([])
    const [row] = await db.sql<{ text: string }>`
      select string_agg(k::text, ' ') as text from keys k
      where project_id = ${Number(made.project.id)}`
    expect(row?.text).not.toContain(made.secretKey)
    expect(row?.text).toContain(made.publicKey)
  })

  test('take settings within their limits, and what is not sent stays', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const set = async (body: object) => (await owner.call(updateProject, { params, body })).body
    await set({ masking: 'strict', retentionDays: 7, identifiedDays: 90 })
    const { project } = await set({ sampleRate: 0.25, recordsAssets: false })
    expect(project).toMatchObject({
      ...{ masking: 'strict', retentionDays: 7, identifiedDays: 90 },
      sampleRate: 0.25,
    })
    const wrong = { status: 400, code: 'invalid_request' }
    for (const body of [
      { retentionDays: 0 },
      { retentionDays: 3651 },
      { identifiedDays: -1 },
      { sampleRate: 1.5 },
      { masking: 'none' },
      { name: '' },
      { unknown: 1 },
    ]) {
      expect(await refusalOf(set(body))).toEqual(wrong)
    }
    const started = await dashboard.send(`/ingest/v1/start?key=${dashboard.project.publicKey}`, {
      method: 'POST',
      body: {},
      headers: { 'content-type': 'text/plain' },
    })
    expect(started.json.settings).toMatchObject({
      masking: 'strict',
      assets: false,
      sampleRate: 0.25,
    })
  })

  test('require proofs of userIds once there is a secret for them', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const made = (await owner.call(makeIdentifySecret, { params, body: {} })).body
    expect(made.identifySecret).toMatch(/^[0-9a-f]{64}$/)
    expect((await owner.call(getInstallState, { params })).body.needsProof).toBe(true)
    await owner.call(removeIdentifySecret, { params })
    expect((await owner.call(getInstallState, { params })).body.needsProof).toBe(false)
  })

  test('take a public key for the tokens of identify', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const onlyEdDsa = { params, body: { identityProofs: 'eddsa' as const } }
    expect(await refusalOf(owner.call(updateProject, onlyEdDsa))).toMatchObject({ status: 400 })
    const publicKey = generateKeyPairSync('ed25519').publicKey.export({
      type: 'spki',
      format: 'pem',
    })
    const body = { publicKey: String(publicKey) }
    const [key] = (await owner.call(addIdentityKey, { params, body })).body.keys
    await owner.call(addIdentityKey, { params, body })
    expect((await owner.call(listIdentityKeys, { params })).body.keys).toEqual([key])
    expect((await owner.call(getInstallState, { params })).body.needsProof).toBe(true)
    await owner.call(updateProject, onlyEdDsa)
    const keyPath = { ...params, keyId: key?.id as string }
    const removing = () => owner.call(removeIdentityKey, { params: keyPath })
    expect(await refusalOf(removing())).toMatchObject({ status: 400 })
    await owner.call(updateProject, { params, body: { identityProofs: 'tokens' } })
    expect((await removing()).body.keys).toEqual([])
    // Done again it changes nothing, and the audit log does not say that it did.
    await removing()
    await owner.call(removeIdentifySecret, { params, query: {} })
    const query = { memberId: owner.memberId }
    const { entries } = (await owner.call(listAuditEntries, { query })).body
    expect(entries.map(({ action }) => action).filter((one) => /identi/.test(one))).toEqual([
      'project.identity_key_removed',
      'project.identity_key_added',
    ])
    expect((await owner.call(getInstallState, { params })).body.needsProof).toBe(true)
  })
})

describe('the installation', () => {
  test('waits for the first recording, and then leads to it', async ({ dashboard }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const state = async () => (await viewer.call(getInstallState, { params })).body
    const waiting = await state()
    expect(waiting).toMatchObject({
      publicKey: { text: dashboard.project.publicKey, lastUsedAt: null, allowedOrigins: null },
      session: null,
      hasBrowser: false,
      secretKeyLastUsedAt: null,
    })
    await dashboard.record(undefined, {})
    expect(await state()).toMatchObject({ session: null, hasBrowser: true })
    const { sessionId } = await dashboard.record()
    expect((await state()).session).toMatchObject({ id: sessionId })
    await dashboard.send('/v1/persons')
    expect((await state()).secretKeyLastUsedAt).not.toBeNull()
  })
})

describe('home', () => {
  test('counts sessions, people and bytes by day, and what is to be looked after', async ({
    dashboard,
    db,
  }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const home = async () => (await viewer.call(getHome, { params })).body
    const empty = await home()
    expect(empty.days).toHaveLength(14)
    expect(empty).toMatchObject({ storedBytes: 0, lastSession: null, worker: 'failed' })

    const ada = await dashboard.record('ada')
    const before = await dashboard.record('ada')
    await db.sql`
      update sessions set started_at = later(started_at, -3 * 86400000.0) where id = ${before.sessionId}`
    const { days, lastSession, storedBytes } = await home()
    expect(days.map(({ day }) => day)).toEqual(days.map(({ day }) => day).toSorted())
    expect(days.at(-1)).toMatchObject({ sessions: 1, people: 1 })
    expect(days.at(-4)).toMatchObject({ sessions: 1, people: 0 })
    expect(lastSession?.id).toBe(ada.sessionId)
    expect(storedBytes).toBeGreaterThan(0)

    await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
    expect((await home()).deletions).toMatchObject({ open: 1, failed: 0, overdue: 0 })
    await db.sql`
      update deletion_jobs set created_at = later(created_at, -31 * 86400000.0)
      where project_id = ${Number(params.projectId)}`
    expect((await home()).deletions).toMatchObject({ open: 1, overdue: 1 })
  })
})

describe('keys', () => {
  test('are made, shown once, and end when they are revoked', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const made = await owner.call(createKey, { params, body: { kind: 'secret', name: 'backend' } })
    const { key, text } = made.body
    expect(key).toMatchObject({ kind: 'secret', last4: text.slice(-4), publicText: null })
    expect((await sendRaw(dashboard.url, '/v1/persons', text, {})).status).toBe(200)
    const { keys } = (await owner.call(listKeys, { params })).body
    expect(keys).toHaveLength(3)
    expect(JSON.stringify(keys)).not.toContain(text)
    const path = { ...params, keyId: key.id }
    const revoked = (await owner.call(revokeKey, { params: path, body: {} })).body.key
    expect(revoked.state).toBe('ended')
    expect((await owner.call(listKeys, { params })).body.keys.at(-1)?.id).toBe(key.id)
    const nobody = { ...params, keyId: 'x' }
    expect(await refusalOf(owner.call(revokeKey, { params: nobody, body: {} }))).toEqual({
      status: 404,
      code: 'key_not_found',
    })
  })

  test('are rotated with an overlap in which both work', async ({ dashboard, address }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const old = (await owner.call(createKey, { params, body: { kind: 'secret', name: 'a' } })).body
    const path = { ...params, keyId: old.key.id }
    const next = await owner.call(rotateKey, { params: path, body: { overlapSeconds: 3_600 } })
    expect(next.body.key).toMatchObject({ kind: 'secret', name: 'a', state: 'working' })
    const status = async (text: string) =>
      (await sendRaw(dashboard.url, '/v1/persons', text, {})).status
    expect([await status(old.text), await status(next.body.text)]).toEqual([200, 200])
    const states = (await owner.call(listKeys, { params })).body.keys.map((key) => key.state)
    expect(states).toContain('ending')
    await shiftClock(address, 3_601)
    const ended = (await owner.call(listKeys, { params })).body.keys.at(-1)
    expect(ended).toMatchObject({ id: old.key.id, state: 'ended' })
    await owner.call(proveIdentity, { body: { password } })
    const again = owner.call(rotateKey, { params: path, body: { overlapSeconds: 0 } })
    expect(await refusalOf(again)).toMatchObject({ status: 400 })
    await shiftClock(address, 0)
  })

  test('a public key can be held to origins, and takes them along when it is rotated', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const { keys } = (await owner.call(listKeys, { params })).body
    const publicKey = keys.find((key) => key.kind === 'public')!
    const path = { ...params, keyId: publicKey.id }
    const set = (allowedOrigins: string[] | null) =>
      owner.call(updateKey, { params: path, body: { allowedOrigins } })
    const { key } = (await set(['https://Shop.example:443/', 'http://localhost:8080'])).body
    expect(key.allowedOrigins).toEqual(['https://shop.example', 'http://localhost:8080'])
    for (const wrong of ['shop.example', 'https://a.b/path', 'ftp://a.b', 'https://u@a.b', '*']) {
      expect(await refusalOf(set([wrong]))).toEqual({ status: 400, code: 'invalid_request' })
    }
    const rotated = await owner.call(rotateKey, { params: path, body: { overlapSeconds: 60 } })
    const { keys: after } = (await owner.call(listKeys, { params })).body
    const next = after.find((one) => one.id === rotated.body.key.id)
    expect(next?.allowedOrigins).toEqual(key.allowedOrigins)
    expect(next?.publicText).toBe(rotated.body.text)
    expect((await set(null)).body.key.allowedOrigins).toBeNull()
    const secret = keys.find((one) => one.kind === 'secret')!
    const onSecret = owner.call(updateKey, {
      params: { ...params, keyId: secret.id },
      body: { allowedOrigins: ['https://a.b'] },
    })
    expect(await refusalOf(onSecret)).toMatchObject({ status: 400 })
  })
})
