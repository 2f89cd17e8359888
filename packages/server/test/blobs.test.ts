import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  BlobMissing,
  type Blobs,
  blobBytesMaximum,
  browserPrefix,
  sessionPrefix,
} from '../src/blobs/blobs.ts'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import { byDepth, isDeep } from './proof/deep.ts'
import { newBucket, useCredentials } from './s3-servers/bucket.ts'
import {
  missingPackages,
  runsHere,
  type S3Server,
  type S3ServerName,
  s3Server,
} from './s3-servers/start.ts'

const isCI = process.env.CI === 'true'

/*
 * What every blob store promises, asked of a folder and of buckets on real S3 servers. Each test
 * has ids of its own in a store it shares with the others.
 */

describe('tests that need a Debian package', () => {
  test('run where it is there', () => {
    expect(runsHere('This', [], true)).toEqual({ runs: true })
  })

  test('are skipped and listed if it is missing, and fail in CI', () => {
    const said = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const words = 'This needs the Debian packages radosgw'
    expect(runsHere('This', ['radosgw'], false)).toEqual({
      runs: false,
      title: `skipped: ${words}`,
    })
    expect(said.mock.calls.join()).toContain(words)
    said.mockRestore()
    expect(() => runsHere('This', ['radosgw'], true)).toThrow(words)
  })
})

describe('blobs in a folder', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lethe-blobs-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))
  promises({
    open: () => openBlobs({ folder: join(folder, 'blobs') }),
    manyBlobs: 1_200,
    // The folder looks at the signal after each part of 256.
    severalParts: 300,
    cutAfter: byDepth([0, 1, 2, 4, 8], everyMillisecond),
    isReadToo: true,
  })
})

// Their pages are set to twenty, and to 255, which take two requests to delete.
bucketPromises('swift', byDepth(21, 45))
bucketPromises('radosgw', byDepth(260, 1_010))

function bucketPromises(name: S3ServerName, manyBlobs: number) {
  const decision = runsHere(`S3 on a real ${name}`, missingPackages(name), isCI)
  if (!decision.runs) {
    test.skip(decision.title, () => {})
    return
  }
  describe.each([
    { versioned: false, title: `blobs in a bucket of ${name}` },
    { versioned: true, title: `blobs in a versioned bucket of ${name}` },
  ])('$title', ({ versioned }) => {
    let server: S3Server
    let url: string
    beforeAll(async () => {
      server = await s3Server(name)
      useCredentials(server)
      url = (await newBucket(server, { versioned })).url
    })
    promises({
      open: () => openBlobs({ folder: '/nowhere', url, endpoint: server.endpoint }),
      manyBlobs,
      // A bucket looks at it in each request.
      severalParts: 5,
      cutAfter: byDepth([0, 3, 9], everyMillisecond),
      // Versions change what is listed and deleted, and not what is read.
      isReadToo: isDeep || !versioned,
    })
  })
}

const everyMillisecond = [...Array(12).keys()]

interface Store {
  open: () => Promise<Blobs>
  /** More than a page of its listing holds, or one request deletes. */
  manyBlobs: number
  /** So many that a deletion of them can be cut off between its parts. */
  severalParts: number
  /** Milliseconds after which a put is cut off. */
  cutAfter: number[]
  /** Whether what is promised of a blob that is read, and of keys, is asked too. */
  isReadToo: boolean
}

function promises({ open, manyBlobs, severalParts, cutAfter, isReadToo }: Store) {
  let blobs: Blobs
  beforeAll(async () => {
    blobs = await open()
  })
  afterAll(() => blobs?.close())

  const newBrowser = () => browserPrefix(1, randomUUID())
  const newSession = async (browser = newBrowser()) => {
    const session = `${browser}${randomUUID()}/`
    await blobs.open(session)
    return session
  }
  const fill = async (prefix: string, count: number) => {
    const names = Array.from({ length: count }, (_, number) => `${prefix}tab-${number}`)
    const rest = names.values()
    const lane = async () => {
      for (const name of rest) await blobs.put(name, randomBytes(10))
    }
    await Promise.all(Array.from({ length: 16 }, lane))
    return names
  }
  const keysUnder = async (prefix: string) => (await Array.fromAsync(blobs.list(prefix))).sort()
  const faultOf = (work: Promise<unknown>) =>
    work.then(
      () => 'none',
      (fault) => fault.code,
    )

  test('a blob put again is replaced as a whole', async () => {
    const session = await newSession()
    await blobs.put(`${session}one`, randomBytes(5_000))
    await blobs.put(`${session}one`, Buffer.from('short'))
    expect(Buffer.from(await blobs.get(`${session}one`)).toString()).toBe('short')
    expect(await keysUnder(session)).toEqual([`${session}one`])
  })

  test('many blobs are listed and deleted to the last one, and their neighbours are whole', async () => {
    const id = randomUUID()
    const [browser, neighbour] = [browserPrefix(1, id), browserPrefix(1, `${id}0`)]
    const [session, other] = [await newSession(browser), await newSession(browser)]
    const keys = [...(await fill(session, manyBlobs)), ...(await fill(other, 2))].sort()
    const kept = await fill(await newSession(neighbour), 2)
    expect(await keysUnder(browser)).toEqual(keys)

    const progress: number[] = []
    const removed = await blobs.deletePrefix(browser, {
      onProgress: (soFar) => progress.push(soFar.blobs),
    })

    expect(removed).toEqual({ blobs: keys.length, bytes: keys.length * 10 })
    expect(progress.length).toBeGreaterThan(1)
    expect(progress).toEqual([...progress].sort((a, b) => a - b))
    expect(progress.at(-1)).toBe(keys.length)
    expect(await blobs.isEmpty(browser)).toBe(true)
    expect(await keysUnder(browser)).toEqual([])
    await expect(blobs.get(`${session}tab-0`)).rejects.toThrow(BlobMissing)
    expect(await keysUnder(neighbour)).toEqual(kept)
  })

  test('a session can be deleted alone', async () => {
    const browser = newBrowser()
    const [session, other] = [await newSession(browser), await newSession(browser)]
    await fill(session, 2)
    const kept = await fill(other, 2)
    expect(await blobs.deletePrefix(session)).toEqual({ blobs: 2, bytes: 20 })
    expect(await keysUnder(browser)).toEqual(kept)
  })

  test('deleting what is not there is no error, also the second time', async () => {
    expect(await blobs.deletePrefix(newBrowser())).toEqual({ blobs: 0, bytes: 0 })
    const session = await newSession()
    await fill(session, 2)
    expect(await blobs.deletePrefix(session)).toEqual({ blobs: 2, bytes: 20 })
    expect(await blobs.deletePrefix(session)).toEqual({ blobs: 0, bytes: 0 })
    await blobs.delete([`${session}tab-0`, `${newBrowser()}none/none`])
  })

  test('a prefix is not empty while one blob is left, and blobs outside of it do not count', async () => {
    const browser = newBrowser()
    const session = await newSession(browser)
    expect(await blobs.isEmpty(browser)).toBe(true)
    await fill(await newSession(), 1)
    expect(await blobs.isEmpty(browser)).toBe(true)
    await fill(session, 1)
    expect(await blobs.isEmpty(browser)).toBe(false)
    expect(await blobs.isEmpty(session)).toBe(false)
  })

  test('a blob deleted by its key leaves alone those whose keys begin alike', async () => {
    const session = await newSession()
    const named = (numbers: number[]) => numbers.map((number) => `${session}tab-${number}`)
    for (const name of named([1, 10, 11, 2, 7])) await blobs.put(name, randomBytes(10))
    await blobs.delete(named([1, 7]))
    expect(await keysUnder(session)).toEqual(named([10, 11, 2]))
  })

  test('a put that is cut off at any moment leaves the whole blob or nothing', async () => {
    const session = await newSession()
    const bytes = randomBytes(300_000)
    for (const turn of cutAfter) {
      const cut = new AbortController()
      const key = `${session}cut-${turn}`
      const put = faultOf(blobs.put(key, bytes, cut.signal))
      setTimeout(() => cut.abort(), turn)
      const outcome = await put
      expect(['none', 'aborted']).toContain(outcome)
      const read = await blobs.get(key).catch((fault) => fault.code)
      if (outcome === 'none') expect(Buffer.compare(read, bytes)).toBe(0)
      else if (read !== 'blob_missing') expect(Buffer.compare(read, bytes)).toBe(0)
    }
    await blobs.deletePrefix(session)
    expect(await blobs.isEmpty(session)).toBe(true)
  })

  test('a deletion that is cut off is finished by the next one', async () => {
    const session = await newSession()
    await fill(session, severalParts)
    const cut = new AbortController()
    const first = blobs.deletePrefix(session, {
      signal: cut.signal,
      onProgress: () => cut.abort(),
    })
    expect(await faultOf(first)).toBe('aborted')
    const { blobs: rest } = await blobs.deletePrefix(session)
    expect(rest).toBeLessThan(severalParts)
    expect(await blobs.isEmpty(session)).toBe(true)
  })

  test('two deletions of one prefix at the same time both end, with nothing left', async () => {
    const session = await newSession()
    await fill(session, 4)
    await Promise.all([blobs.deletePrefix(session), blobs.deletePrefix(session)])
    expect(await blobs.isEmpty(session)).toBe(true)
  })

  test('puts during a deletion are whole or gone, and the next deletion leaves nothing', async () => {
    const session = await newSession()
    await fill(session, byDepth(6, 20))
    const bytes = randomBytes(20_000)
    const late = Array.from({ length: byDepth(4, 8) }, (_, number) => `${session}late-${number}`)
    const [, ...codes] = await Promise.all([
      blobs.deletePrefix(session),
      ...late.map((key) => faultOf(blobs.put(key, bytes))),
    ])
    for (const code of codes) expect(['none', 'prefix_gone']).toContain(code)
    for (const key of late) {
      const read = await blobs.get(key).catch((fault) => fault.code)
      if (read !== 'blob_missing') expect(Buffer.compare(read, bytes)).toBe(0)
    }
    await blobs.deletePrefix(session)
    expect(await blobs.isEmpty(session)).toBe(true)
  })

  test('the check does what recordings need, finds nothing missing and leaves nothing', async () => {
    expect(await blobs.check()).toEqual([])
    expect(await blobs.isEmpty('check/')).toBe(true)
  })

  if (!isReadToo) return

  test('what is put is read back byte for byte, whatever its size', async () => {
    const session = await newSession()
    for (const size of [0, 1, 29, 65_536, 1_000_003]) {
      const bytes = randomBytes(size)
      await blobs.put(`${session}of-${size}`, bytes)
      const read = await blobs.get(`${session}of-${size}`)
      expect(Buffer.compare(read, bytes), `${size} bytes`).toBe(0)
    }
  })

  test('what is larger than any blob of ours is not read', async () => {
    const session = await newSession()
    await blobs.put(`${session}huge`, new Uint8Array(blobBytesMaximum + 1))
    await expect(blobs.get(`${session}huge`)).rejects.toMatchObject({ code: 'foreign_entry' })
  })

  test('a missing blob is told apart from a failing store', async () => {
    const session = await newSession()
    await expect(blobs.get(`${session}none`)).rejects.toThrow(BlobMissing)
    await expect(blobs.get(`${newBrowser()}none/none`)).rejects.toThrow(BlobMissing)
  })

  test('the ledger lies apart from the recordings', async () => {
    const project = 7_000_001
    await blobs.open(`ledger/${project}/`)
    await blobs.put(`ledger/${project}/job.json`, Buffer.from('{}'))
    await blobs.deletePrefix(`blobs/${project}/`)
    expect(await keysUnder(`ledger/${project}/`)).toEqual([`ledger/${project}/job.json`])
    expect(await keysUnder('ledger/')).toContain(`ledger/${project}/job.json`)
  })

  const hostile = [
    '',
    '/',
    '//',
    '.',
    '..',
    '../x',
    'blobs/../../etc/passwd',
    'blobs/./x',
    'blobs//x',
    '/etc/passwd',
    'blobs/.hidden',
    'blobs/a b',
    'blobs/a\\b',
    'blobs/a\0b',
    'blobs/a\nb',
    'blobs/%2e%2e/x',
    'blobs/ä',
    'blobs/\ud800',
    `blobs/${'a'.repeat(129)}`,
    `blobs/${'a/'.repeat(300)}a`,
  ]

  test('a hostile key is refused by every function', async () => {
    for (const key of hostile) {
      const all = [
        blobs.put(key, randomBytes(1)),
        blobs.get(key),
        blobs.delete([key]),
        blobs.open(`${key}/`),
        blobs.deletePrefix(`${key}/`),
        blobs.isEmpty(`${key}/`),
        Array.fromAsync(blobs.list(`${key}/`)),
      ]
      const codes = await Promise.all(all.map(faultOf))
      expect(new Set(codes), JSON.stringify(key)).toEqual(new Set(['invalid_key']))
    }
  })

  test('no text is a key that is not made of the allowed segments', async () => {
    const segment = fc.string({ unit: fc.constantFrom('a', 'Z', '0', '.', '_', '-', ' ', '/') })
    await fc.assert(
      fc.asyncProperty(fc.array(segment, { maxLength: 4 }), async (segments) => {
        const key = segments.join('/')
        const allowed = /^([A-Za-z0-9_-][A-Za-z0-9._-]*\/)+[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(key)
        const expected = allowed ? ['blob_missing', 'none'] : ['invalid_key']
        expect(expected).toContain(await faultOf(blobs.get(key)))
      }),
      { numRuns: 50 },
    )
  })

  test('one wrong id never empties the whole store', async () => {
    expect(await faultOf(blobs.deletePrefix('blobs/'))).toBe('invalid_key')
    expect(await faultOf(blobs.deletePrefix('blobs/1'))).toBe('invalid_key')
    expect(await faultOf(blobs.deletePrefix(browserPrefix(1, '')))).toBe('invalid_key')
    expect(await faultOf(blobs.deletePrefix(sessionPrefix(1, '', 'x')))).toBe('invalid_key')
  })

  test('a put that was cut off before it began leaves nothing', async () => {
    const session = await newSession()
    const cut = blobs.put(`${session}cut`, randomBytes(10), AbortSignal.abort())
    expect(await faultOf(cut)).toBe('aborted')
    expect(await blobs.isEmpty(session)).toBe(true)
  })
}
