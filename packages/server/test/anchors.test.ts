import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished } from 'vitest'
import { anchorChains, compareAnchors, readAnchors } from '../src/erasure/anchors.ts'
import { issueReceipts } from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { record, requestErasure, runAll, type TestErasure, test } from './erasure-fixtures.ts'

async function erase(erasure: TestErasure, projectId: number, externalId: string) {
  await record(erasure, projectId, externalId, { browsers: 0 })
  await requestErasure(erasure, projectId, externalId)
  await runAll(erasure.options)
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-anchors-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** A server that responds to each body with what `work` returns for it, or 503. */
async function serve(work: (body: Buffer) => Promise<Buffer | undefined>): Promise<string> {
  const server = createServer(async (request, response) => {
    const answer = await work(await buffer(request))
    response.writeHead(answer ? 200 : 503).end(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

describe('anchors', () => {
  test('match the receipts, and reveal it if receipts were replaced, even by genuine ones', async ({
    erasure,
    project,
    db,
  }) => {
    const { signer } = erasure.options
    const file = join(await newFolder(), 'anchors')
    const anchor = () => anchorChains({ db, signer, places: { file } })
    expect(await anchor()).toBe(0)
    await erase(erasure, project.id, 'ada')
    expect([await anchor(), await anchor()]).toEqual([1, 0])
    for (const externalId of ['eve', 'bob']) await erase(erasure, project.id, externalId)
    expect(await anchor()).toBe(1)
    await erase(erasure, project.id, 'joe')
    const text = await readFile(file, 'utf8')
    const anchors = await readAnchors(text, await publicKeys(db.sql))
    expect(anchors.map(({ number }) => number)).toEqual([1, 3])
    expect(await compareAnchors(db.sql, anchors)).toBe(4)

    // A line that was changed is none.
    const changed = text.replace(/\.[\w-]{8}/, '.AAAAAAAA')
    await expect(readAnchors(changed, await publicKeys(db.sql))).rejects.toThrow('Line 1')

    const refused = (words: string) =>
      expect(compareAnchors(db.sql, anchors)).rejects.toThrow(words)
    const rows = await db.sql<{ number: string; jws: string; jobId: string }>`
      select number, jws, job_id as "jobId" from receipts order by number`
    await db.sql`delete from receipts where number >= 3`
    await refused('Receipt 3 of project')
    // Made again by who has all keys, one following on the other as before.
    await db.sql`delete from receipts`
    await db.sql`delete from receipt_chains`
    const job = {
      projectId: project.id,
      externalId: 'nobody',
      keepRecordings: false,
      createdAt: '2026-01-01T00:00:00.000Z',
      startedAt: '2026-01-01T00:00:00.000Z',
      completedAt: '2026-01-01T00:00:00.000Z',
      isSuppressed: false,
      isTold: false,
      attempts: 1,
      removed: { sessions: 0, chunks: 0, blobs: 0, bytes: 0, browsers: 0 },
      earlierJobs: [],
    }
    const jobs = rows.map(({ jobId }) => ({ ...job, id: jobId }))
    const issued = { projectId: project.id, signer, verifiedAt: null, backupRetentionDays: 30 }
    await db.begin((tx) => issueReceipts(tx, jobs, issued))
    await refused('Receipt 1 of project')
  })

  test('are sent again until they are accepted', async ({ erasure, project, db }) => {
    const { signer } = erasure.options
    const received: string[] = []
    let isDown = true
    const url = await serve(async (body) => {
      if (isDown) return undefined
      received.push(body.toString())
      return Buffer.from('ok')
    })
    await erase(erasure, project.id, 'ada')
    const anchor = () => anchorChains({ db, signer, places: { url } })
    await expect(anchor()).rejects.toMatchObject({ code: 'url_refused' })
    isDown = false
    expect([await anchor(), await anchor()]).toEqual([1, 0])
    const anchors = await readAnchors(received.join('\n'), await publicKeys(db.sql))
    expect(await compareAnchors(db.sql, anchors)).toBe(1)
  })

  test('carry a time stamp that OpenSSL verifies, or are not sent', async ({
    erasure,
    project,
    db,
  }) => {
    const { signer } = erasure.options
    const folder = await newFolder()
    const openssl = await newAuthority(folder)
    let count = 0
    const timestampUrl = await serve(async (query) => {
      if (++count === 1) return Buffer.from('3003020102', 'hex')
      await writeFile(join(folder, 'query'), query)
      await openssl('ts', '-reply', '-config', 'tsa.cnf', '-queryfile', 'query', '-out', 'reply')
      return readFile(join(folder, 'reply'))
    })
    await erase(erasure, project.id, 'ada')
    const file = join(folder, 'anchors')
    const anchor = () => anchorChains({ db, signer, places: { file, timestampUrl } })
    await expect(anchor()).rejects.toMatchObject({ code: 'timestamp_refused' })
    await expect(readFile(file)).rejects.toThrow('ENOENT')
    expect(await anchor()).toBe(1)
    const line = JSON.parse(await readFile(file, 'utf8'))
    await writeFile(join(folder, 'anchor'), line.anchor)
    await writeFile(join(folder, 'stamp'), Buffer.from(line.timestamp, 'base64'))
    const verified = ['ts', '-verify', '-data', 'anchor', '-in', 'stamp', '-CAfile', 'tsa.pem']
    await openssl(...verified)
    await writeFile(join(folder, 'anchor'), `${line.anchor} `)
    await expect(openssl(...verified)).rejects.toThrow()
  })
})

/** A time stamping authority of files in this folder. Returns how to call OpenSSL there. */
async function newAuthority(folder: string) {
  const openssl = (...words: string[]) => promisify(execFile)('openssl', words, { cwd: folder })
  await writeFile(join(folder, 'serial'), '01\n')
  await writeFile(
    join(folder, 'tsa.cnf'),
    `[ tsa ]
default_tsa = tsa1
[ tsa1 ]
serial = serial
signer_cert = tsa.pem
certs = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
[ req ]
distinguished_name = name
prompt = no
x509_extensions = use
[ name ]
CN = Time
[ use ]
extendedKeyUsage = critical,timeStamping
keyUsage = critical,digitalSignature
`,
  )
  const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', 'tsa.key']
  await openssl('req', '-x509', '-config', 'tsa.cnf', ...key, '-out', 'tsa.pem')
  return openssl
}
