import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import type { ReceiptStatement } from '@lethe/contract/receipt.ts'
import { describe, expect } from 'vitest'
import { parseMasterKeys } from '../src/blobs/master-keys.ts'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { findDeletionJob } from '../src/erasure/jobs.ts'
import { findReceipt, hashOfReceipt, verifyReceipt } from '../src/erasure/receipts.ts'
import { openSigner, publicKeys } from '../src/erasure/signing-keys.ts'
import type { Sql } from '../src/sql.ts'
import { record, requestErasure, runAll, type TestErasure, test } from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

async function erased(
  erasure: TestErasure,
  projectId: number,
  externalId: string,
  keepRecordings = false,
) {
  await record(erasure, projectId, externalId, { browsers: 1 })
  const { id } = await requestErasure(erasure, projectId, externalId, keepRecordings)
  await runAll(erasure.options)
  const jws = (await findReceipt(erasure.options.db.sql, projectId, id))!
  return { id, jws, statement: statementOf(jws) }
}

function statementOf(jws: string): ReceiptStatement {
  return JSON.parse(Buffer.from(jws.split('.')[1]!, 'base64url').toString())
}

describe('a receipt', () => {
  test('states the job, what was removed, what was verified and for how long backups may differ', async ({
    erasure,
    project,
    db,
  }) => {
    const { id, statement } = await erased(erasure, project.id, 'ada')
    const job = (await findDeletionJob(db.sql, project.id, id))!
    expect(statement).toEqual({
      version: 1,
      jobId: id,
      projectId: project.id,
      number: 1,
      previousReceiptHash: null,
      externalIdHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      externalIdSalt: expect.stringMatching(/^[0-9a-f]{32}$/),
      keepRecordings: false,
      createdAt: job.createdAt,
      startedAt: job.startedAt,
      completedAt: job.completedAt,
      attempts: 1,
      removed: { sessions: 2, chunks: 4, blobs: 4, bytes: 40, browsers: 1 },
      earlierJobs: [],
      recordingsVerifiedAt: expect.any(String),
      backupRetentionDays: 30,
    })
    expect(statement.recordingsVerifiedAt! >= statement.startedAt).toBe(true)
    expect(statement.recordingsVerifiedAt! <= statement.completedAt).toBe(true)
    const kept = await erased(erasure, project.id, 'eve', true)
    expect(kept.statement).toMatchObject({
      keepRecordings: true,
      recordingsVerifiedAt: null,
      removed: { sessions: 0, chunks: 0, blobs: 0, bytes: 0, browsers: 0 },
    })
  })

  test('names its person only to those who know the externalId', async ({ erasure, project }) => {
    const { jws, statement } = await erased(erasure, project.id, 'ädä@example.com')
    const hash = createHash('sha256')
      .update(Buffer.from(statement.externalIdSalt, 'hex'))
      .update(Buffer.from('ädä@example.com', 'utf8'))
      .digest('hex')
    expect(statement.externalIdHash).toBe(hash)
    expect(Buffer.from(jws.split('.')[1]!, 'base64url').toString()).not.toContain('example')
    const again = await erased(erasure, project.id, 'ädä@example.com')
    expect(again.statement.externalIdHash).not.toBe(hash)
  })

  test('can be checked with nothing but the published keys and a standard library', async ({
    erasure,
    project,
    db,
  }) => {
    const { jws } = await erased(erasure, project.id, 'ada')
    const [header, payload, signature] = jws.split('.')
    const { alg, kid } = JSON.parse(Buffer.from(header!, 'base64url').toString())
    const jwk = (await publicKeys(db.sql)).keys.find((key) => key.kid === kid)!
    expect([alg, jwk.crv]).toEqual(['EdDSA', 'Ed25519'])
    const key = createPublicKey({ key: { ...jwk }, format: 'jwk' })
    const signed = Buffer.from(`${header}.${payload}`)
    expect(verify(null, signed, key, Buffer.from(signature!, 'base64url'))).toBe(true)
  })

  test('is refused if any one character is changed', async ({ erasure, project, db }) => {
    const { jws } = await erased(erasure, project.id, 'ada')
    const keys = await publicKeys(db.sql)
    expect(await verifyReceipt(jws, keys)).toEqual(statementOf(jws))
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (let at = 0; at < jws.length; at++) {
      // The next letter: in the last one of a part that may be a bit that stands for nothing.
      const other = letters[(letters.indexOf(jws[at]!) + 1) % letters.length]
      const changed = jws.slice(0, at) + other + jws.slice(at + 1)
      await expect(verifyReceipt(changed, keys), `character ${at}`).rejects.toMatchObject({
        name: 'ReceiptRefused',
      })
    }
  })

  test('of another installation, of another algorithm or of no text at all is refused', async ({
    erasure,
    project,
    db,
  }) => {
    const { jws } = await erased(erasure, project.id, 'ada')
    await expect(verifyReceipt(jws, { keys: [] })).rejects.toThrow('not in the key set')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    const keys = await publicKeys(db.sql)
    for (const text of ['', 'x', 'a.b.c', `${none}.${jws.split('.')[1]}.`]) {
      await expect(verifyReceipt(text, keys)).rejects.toMatchObject({ name: 'ReceiptRefused' })
    }
  })
})

describe('the chain of a project', () => {
  test('numbers receipts without gaps, each naming the hash of the one before', async ({
    erasure,
    project,
    db,
  }) => {
    const other = await newProject(db)
    const receipts = []
    for (const one of ['a', 'b', 'c']) receipts.push(await erased(erasure, project.id, one))
    const theirs = await erased(erasure, other.id, 'a')
    expect(theirs.statement).toMatchObject({ number: 1, previousReceiptHash: null })
    expect(receipts.map(({ statement }) => statement.number)).toEqual([1, 2, 3])
    expect(receipts.map(({ statement }) => statement.previousReceiptHash)).toEqual([
      null,
      hashOfReceipt(receipts[0]!.jws),
      createHash('sha256').update(receipts[1]!.jws).digest('hex'),
    ])
  })

  test('does not fork when many erasures of one project end at once', async ({
    erasure,
    project,
    db,
  }) => {
    for (let i = 0; i < 24; i++) {
      await record(erasure, project.id, `p${i}`, { browsers: 0 })
      await requestErasure(erasure, project.id, `p${i}`)
    }
    const oneByOne = async () => {
      while ((await runNextAttempt(erasure.options)) !== undefined);
    }
    await Promise.all(Array.from({ length: 6 }, oneByOne))
    const rows = await db.sql<{ jws: string }>`
      select jws from receipts where project_id = ${project.id} order by number`
    expect(rows).toHaveLength(24)
    let previous: string | null = null
    for (const [index, { jws }] of rows.entries()) {
      const statement = statementOf(jws)
      expect(statement.number).toBe(index + 1)
      expect(statement.previousReceiptHash).toBe(previous)
      previous = hashOfReceipt(jws)
    }
    const [chain] = await db.sql`
      select length::int, encode(head, 'hex') as head from receipt_chains
      where project_id = ${project.id}`
    expect(chain).toEqual({ length: 24, head: previous })
  })

  test('has no receipt for an attempt whose last transaction was rolled back', async ({
    erasure,
    project,
    db,
  }) => {
    await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = await requestErasure(erasure, project.id, 'ada')
    const failing = {
      ...db,
      begin: ((work: (tx: Sql) => Promise<unknown>) =>
        db.begin(async (tx) => {
          const result = await work(tx)
          const [receipt] = await tx`select from receipts where job_id = ${id}`
          if (receipt) throw new Error('before the commit')
          return result
        })) as typeof db.begin,
    }
    expect(await runNextAttempt({ ...erasure.options, db: failing })).toBe('failed')
    expect(await findReceipt(db.sql, project.id, id)).toBeUndefined()
    expect(await db.sql`select from receipt_chains`).toEqual([])
  })
})

describe('the signing key', () => {
  test('is the same for every process that starts, also when many start at once', async ({
    erasure,
    db,
  }) => {
    await db.sql`delete from signing_keys`
    const signers = await Promise.all(
      Array.from({ length: 6 }, () => openSigner(db, erasure.masterKeys)),
    )
    expect(new Set(signers.map(({ keyId }) => keyId)).size).toBe(1)
  })

  test('is not in the database in the clear', async ({ erasure, db }) => {
    const { d } = erasure.options.signer.key.export({ format: 'jwk' })
    const seed = Buffer.from(d!, 'base64url')
    const [row] = await db.sql<{ wrapped: Buffer }>`select wrapped from signing_keys`
    expect(row!.wrapped.includes(seed)).toBe(false)
  })

  test('survives a rotation of the master key, and goes under the new one', async ({
    erasure,
    db,
    project,
  }) => {
    const newKey = `k2:${randomBytes(32).toString('base64')}`
    const old = [...erasure.masterKeys.byId].map(
      ([id, key]) => `${id}:${key.export().toString('base64')}`,
    )
    const rotated = await openSigner(db, parseMasterKeys([newKey, ...old].join()))
    expect(rotated.keyId).toBe(erasure.options.signer.keyId)
    const alone = await openSigner(db, parseMasterKeys(newKey))
    expect(alone.keyId).toBe(rotated.keyId)
    const { jws } = await erased(
      { ...erasure, options: { ...erasure.options, signer: alone } },
      project.id,
      'ada',
    )
    expect(await verifyReceipt(jws, await publicKeys(db.sql))).toMatchObject({ number: 1 })
  })

  test('whose master key is lost is replaced, and its receipts can be checked as before', async ({
    erasure,
    db,
    project,
  }) => {
    const { jws } = await erased(erasure, project.id, 'ada')
    const fresh = parseMasterKeys(`k9:${randomBytes(32).toString('base64')}`)
    const signer = await openSigner(db, fresh)
    expect(signer.keyId).not.toBe(erasure.options.signer.keyId)
    const after = await erased(
      { ...erasure, options: { ...erasure.options, signer } },
      project.id,
      'eve',
    )
    const keys = await publicKeys(db.sql)
    expect(keys.keys).toHaveLength(2)
    for (const one of [jws, after.jws]) await verifyReceipt(one, keys)
  })
})
