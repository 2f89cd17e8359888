import { execFile, execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Blobs, browserPrefix } from '../src/blobs/blobs.ts'
import { openFolder } from '../src/blobs/filesystem.ts'
import { runsHere } from './s3-servers/start.ts'

/* What a folder of blobs promises beyond what blobs.test.ts asks of every store. */

let place: string
let root: string
let blobs: Blobs

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'lethe-folder-'))
  root = join(place, 'blobs-root')
  blobs = await openFolder(root)
})
afterEach(() => rm(place, { recursive: true, force: true }))

const faultOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (fault) => fault.code,
  )

async function newSession(browser = browserPrefix(1, randomUUID())) {
  const session = `${browser}${randomUUID()}/`
  await blobs.open(session)
  return session
}

describe('a put that comes late', () => {
  test('fails and leaves nothing when its prefix was deleted', async () => {
    const browser = browserPrefix(1, randomUUID())
    const session = await newSession(browser)
    await blobs.deletePrefix(browser)
    expect(await faultOf(blobs.put(`${session}late`, randomBytes(10)))).toBe('prefix_gone')
    expect(existsSync(join(root, browser))).toBe(false)
  })

  test('fails when no session was ever started there', async () => {
    const key = `${browserPrefix(1, randomUUID())}session/chunk`
    expect(await faultOf(blobs.put(key, randomBytes(10)))).toBe('prefix_gone')
  })
})

describe('what a crashed put left', () => {
  test('is no blob, keeps the prefix from being empty, and goes with the prefix', async () => {
    const session = await newSession()
    await blobs.put(`${session}whole`, randomBytes(10))
    await writeFile(join(root, session, `.put-${randomUUID()}`), 'half')
    await blobs.delete([`${session}whole`])
    expect(await Array.fromAsync(blobs.list(session))).toEqual([])
    expect(await blobs.isEmpty(session)).toBe(false)
    expect(await blobs.deletePrefix(session)).toEqual({ blobs: 0, bytes: 0 })
    expect(await blobs.isEmpty(session)).toBe(true)
  })
})

describe('symbolic links', () => {
  let outside: string
  beforeEach(async () => {
    outside = join(place, 'outside')
    await mkdir(join(outside, 'session'), { recursive: true })
    await writeFile(join(outside, 'session', 'precious'), 'precious')
  })

  const all = (prefix: string, key: string) =>
    Promise.all(
      [
        blobs.open(prefix),
        blobs.put(key, randomBytes(1)),
        blobs.get(key),
        blobs.delete([key]),
        blobs.deletePrefix(prefix),
        blobs.isEmpty(prefix),
        Array.fromAsync(blobs.list(prefix)),
      ].map(faultOf),
    )

  test('in the place of a directory are refused by every function', async () => {
    await mkdir(join(root, 'blobs', '1'), { recursive: true })
    await symlink(outside, join(root, 'blobs', '1', 'browser'))
    const prefix = browserPrefix(1, 'browser')
    expect(new Set(await all(`${prefix}session/`, `${prefix}session/precious`))).toEqual(
      new Set(['symbolic_link']),
    )
    expect(await faultOf(blobs.deletePrefix(prefix))).toBe('symbolic_link')
    expect(await readFile(join(outside, 'session', 'precious'), 'utf8')).toBe('precious')
  })

  test('that lead nowhere are refused too, and nothing under them counts as empty', async () => {
    await mkdir(join(root, 'blobs', '1'), { recursive: true })
    await symlink(join(place, 'nowhere'), join(root, 'blobs', '1', 'browser'))
    const prefix = browserPrefix(1, 'browser')
    expect(await faultOf(blobs.isEmpty(prefix))).toBe('symbolic_link')
    expect(await faultOf(blobs.deletePrefix(prefix))).toBe('symbolic_link')
    expect(await faultOf(blobs.open(prefix))).toBe('symbolic_link')
  })

  test('among the blobs are never read, keep the prefix from being empty, and stop its deletion when the rest is gone', async () => {
    const session = await newSession()
    await symlink(join(outside, 'session', 'precious'), join(root, session, 'chunk'))
    await symlink(outside, join(root, session, 'folder'))
    expect(await faultOf(blobs.get(`${session}chunk`))).toBe('symbolic_link')
    expect(await Array.fromAsync(blobs.list(session))).toEqual([])
    expect(await blobs.isEmpty(session)).toBe(false)
    await blobs.put(`${session}chunk`, Buffer.from('new'))
    expect(await readFile(join(outside, 'session', 'precious'), 'utf8')).toBe('precious')
    expect(await faultOf(blobs.visit(session, async () => {}))).toBe('symbolic_link')
    expect(await faultOf(blobs.deletePrefix(session))).toBe('symbolic_link')
    expect(await readdir(join(root, session))).toEqual(['folder'])
    expect(await readdir(join(outside, 'session'))).toEqual(['precious'])
  })

  test('in the place of the ledger are named, with what to do', async () => {
    await mkdir(join(outside, '000000000'))
    await symlink(outside, join(root, 'ledger'))
    for (const work of [
      () => Array.fromAsync(blobs.list('ledger/000000000/')),
      () => blobs.get('ledger/000000000/x.jws'),
      () => blobs.open('ledger/000000000/'),
    ]) {
      await expect(work()).rejects.toThrow(
        'at or below "ledger", and symbolic links are not followed',
      )
    }
  })

  test('may stand for the whole folder, so that it can lie on another disk', async () => {
    await rename(root, join(place, 'elsewhere'))
    await symlink(join(place, 'elsewhere'), root)
    blobs = await openFolder(root)
    const session = await newSession()
    await blobs.put(`${session}chunk`, Buffer.from('new'))
    expect(await blobs.deletePrefix(session)).toEqual({ blobs: 1, bytes: 3 })
  })
})

describe('the folder', () => {
  test('opens to nobody but its owner', async () => {
    const session = await newSession()
    await blobs.put(`${session}chunk`, randomBytes(1))
    expect((await stat(root)).mode & 0o777).toBe(0o700)
    expect((await stat(join(root, session))).mode & 0o777).toBe(0o700)
    expect((await stat(join(root, session, 'chunk'))).mode & 0o777).toBe(0o600)
  })

  test('that vanished while the service runs is a fault, not an empty store', async () => {
    await rm(root, { recursive: true })
    expect(await faultOf(blobs.isEmpty(browserPrefix(1, 'browser')))).toBe('failed')
    expect(await faultOf(blobs.deletePrefix(browserPrefix(1, 'browser')))).toBe('failed')
  })

  test('with a pipe in the place of a blob, or a file far larger than one, returns at once', async () => {
    const session = await newSession()
    execFileSync('mkfifo', [join(root, session, 'pipe')])
    await writeFile(join(root, session, 'huge'), '')
    await truncate(join(root, session, 'huge'), 3 * 1_024 ** 3)
    for (const name of ['pipe', 'huge']) {
      expect(await faultOf(blobs.get(`${session}${name}`))).toBe('foreign_entry')
    }
  })

  test('with folders deeper than any path lists what lies above them', async () => {
    const session = await newSession()
    await blobs.put(`${session}chunk`, randomBytes(10))
    // Halves, as the system takes no path to the whole.
    const half = Array(15).fill('d'.repeat(200)).join('/')
    for (const folder of [session, 'other']) {
      await mkdir(join(root, folder, half), { recursive: true })
    }
    await rename(join(root, 'other'), join(root, session, half, 'other'))
    expect(await Array.fromAsync(blobs.list(session))).toEqual([`${session}chunk`])
    // Nor does the removal after the test get there.
    execFileSync('rm', ['-rf', join(root, session)])
  })

  test('with a file in the place of a directory is a fault, not an empty store', async () => {
    await mkdir(join(root, 'blobs', '1'), { recursive: true })
    await writeFile(join(root, 'blobs', '1', 'browser'), 'a file')
    expect(await faultOf(blobs.isEmpty(browserPrefix(1, 'browser')))).toBe('failed')
    expect(await faultOf(blobs.open(browserPrefix(1, 'browser')))).toBe('failed')
  })

  test('can be opened by two processes that start at the same time', async () => {
    const both = [openFolder(join(place, 'a/b/c')), openFolder(join(place, 'a/b/c'))]
    for (const store of await Promise.all(both)) expect(await store.check()).toEqual([])
  })
})

/*
 * What survives a power cut is decided by the system calls and their order, so strace reads them
 * off a process of its own that works with the real module.
 */
const strace = runsHere(
  'What survives a power cut',
  existsSync('/usr/bin/strace') ? [] : ['strace'],
  process.env.CI === 'true',
)
if (!strace.runs) test.skip(strace.title, () => {})

describe.runIf(strace.runs)('across a power cut', () => {
  const session = 'blobs/1/browser/session/'
  const ledger = 'ledger/000000001/'
  const module = resolve(import.meta.dirname, '../src/blobs/filesystem.ts')

  /** Runs `work` with a store of its own under strace; returns the calls, paths from the root on. */
  async function callsOf(work: string): Promise<string[]> {
    const record = join(place, 'record')
    const calls = 'trace=openat,mkdir,fsync,fdatasync,rename,unlink,rmdir'
    execFileSync('strace', ['-f', '-y', '-qq', '-e', calls, '-o', record, ...nodeWith(work)])
    const lines = (await readFile(record, 'utf8')).split('\n')
    return lines
      .filter((line) => line.includes(`${root}`) && !line.includes('= -1'))
      .map((line) => line.replace(/^\d+ +/, '').replaceAll(root, ''))
  }

  const nodeWith = (work: string) => [
    process.execPath,
    '--input-type=module',
    '-e',
    `const { openFolder } = await import(${JSON.stringify(module)})
     const blobs = await openFolder(${JSON.stringify(root)})
     ${work}`,
  ]

  const positionOf = (calls: string[], pattern: RegExp, from = 0) => {
    const position = calls.findIndex((call, index) => index >= from && pattern.test(call))
    expect(position, `${pattern} after call ${from} of\n${calls.join('\n')}`).toBeGreaterThan(-1)
    return position
  }

  test('the place of a session is there: each directory made is synced into its parent', async () => {
    const calls = await callsOf(`await blobs.open('${session}')`)
    for (const [parent, made] of [
      ['', '/blobs'],
      ['/blobs', '/blobs/1'],
      ['/blobs/1', '/blobs/1/browser'],
      ['/blobs/1/browser', '/blobs/1/browser/session'],
    ]) {
      const mkdirAt = positionOf(calls, new RegExp(`^mkdir\\("${made}"`))
      positionOf(calls, new RegExp(`^fsync\\(\\d+<${parent}>`), mkdirAt)
    }
  })

  test('the same if another process made the directories and crashed before it synced them', async () => {
    await mkdir(join(root, session), { recursive: true })
    const calls = await callsOf(`await blobs.open('${session}')`)
    for (const parent of ['', '/blobs', '/blobs/1', '/blobs/1/browser']) {
      positionOf(calls, new RegExp(`^fsync\\(\\d+<${parent}>`))
    }
  })

  test('a new blob of a recording is there: it is made, its bytes are synced, then its name', async () => {
    await blobs.open(session)
    const calls = await callsOf(`await blobs.put('${session}chunk', Buffer.from('bytes'))`)
    const made = positionOf(calls, /^openat\([^"]*"[^"]*\/chunk", [^)]*O_CREAT\|O_EXCL/)
    const bytes = positionOf(calls, /^fsync\(\d+<\/blobs\/1\/browser\/session\/chunk>/, made)
    positionOf(calls, /^fsync\(\d+<\/blobs\/1\/browser\/session>/, bytes)
    expect(calls.filter((call) => call.startsWith('rename'))).toEqual([])
  })

  test('every other blob is there whole: bytes are synced, then named, then the name is synced', async () => {
    await blobs.open(ledger)
    const calls = await callsOf(`await blobs.put('${ledger}entry', Buffer.from('bytes'))`)
    const bytes = positionOf(calls, /^fsync\(\d+<\/ledger\/000000001\/\.put-/)
    const named = positionOf(calls, /^rename\("[^"]*\.put-[^"]*", "[^"]*\/entry"\)/, bytes)
    positionOf(calls, /^fsync\(\d+<\/ledger\/000000001>/, named)
  })

  test('what was deleted does not come back, even if the process crashed after it', async () => {
    await blobs.open(session)
    await blobs.put(`${session}chunk`, Buffer.from('bytes'))
    const calls = await callsOf(`await blobs.deletePrefix('blobs/1/browser/')`)
    const unlinked = positionOf(calls, /^unlink\("[^"]*\/chunk"\)/)
    const removed = positionOf(calls, /^rmdir\("\/blobs\/1\/browser"\)/, unlinked)
    positionOf(calls, /^fsync\(\d+<\/blobs\/1>/, removed)
    const again = await callsOf(`await blobs.deletePrefix('blobs/1/browser/')`)
    positionOf(again, /^fsync\(\d+<\/blobs\/1>/)
  })

  test('a blob that was deleted by its key does not come back', async () => {
    await blobs.open(session)
    await blobs.put(`${session}chunk`, Buffer.from('bytes'))
    const calls = await callsOf(`await blobs.delete(['${session}chunk'])`)
    const unlinked = positionOf(calls, /^unlink\("[^"]*\/chunk"\)/)
    positionOf(calls, /^fsync\(\d+<\/blobs\/1\/browser\/session>/, unlinked)
  })

  /** Runs `work` with system calls tampered with; returns what it printed until its end. */
  const tamperedWith = (inject: string, work: string) =>
    new Promise<string>((done) => {
      const traced = ['-f', '-qq', '-o', '/dev/null', '-e', `inject=${inject}`]
      // One thread does all file work, since strace counts calls by thread.
      const env = { ...process.env, UV_THREADPOOL_SIZE: '1' }
      execFile('strace', [...traced, ...nodeWith(work)], { env }, (_, output) => done(output))
    })

  test.each([
    [session, 'fsync:error=EIO', 'failed'],
    [session, 'fsync:error=ENOSPC', 'store_full'],
    [ledger, 'fsync:error=EIO', 'failed'],
    [ledger, 'rename:error=EIO', 'failed'],
    [ledger, 'rename:error=EROFS', 'access_denied'],
  ])(
    'a put under %s that met %s says %s and leaves nothing behind',
    async (place, inject, code) => {
      await blobs.open(place)
      const put = `await blobs.put('${place}one', Buffer.from('bytes'))`
      const output = await tamperedWith(inject, `${put}.catch((fault) => console.log(fault.code))`)
      expect(output).toBe(`${code}\n`)
      expect(await blobs.isEmpty(place)).toBe(true)
    },
  )

  test('a deletion whose last sync failed does not say that it is done', async () => {
    await blobs.open(session)
    const deletion = `await blobs.deletePrefix('${session}')`
    const words = `.then(() => console.log('done'), (fault) => console.log(fault.code))`
    expect(await tamperedWith('fsync:error=EIO', deletion + words)).toBe('failed\n')
  })

  test.each([
    'fsync:signal=SIGKILL:when=1',
    'fsync:signal=SIGKILL:when=2',
    'rename:signal=SIGKILL',
  ])('an entry of the ledger killed at %s is whole or not listed', async (inject) => {
    await blobs.open(ledger)
    const put = `await blobs.put('${ledger}entry', Buffer.from('bytes'))`
    expect(await tamperedWith(inject, `${put}; console.log('survived')`)).toBe('')
    const keys = await Array.fromAsync(blobs.list(ledger))
    if (keys.length > 0) {
      expect(keys).toEqual([`${ledger}entry`])
      expect(Buffer.from(await blobs.get(`${ledger}entry`)).toString()).toBe('bytes')
    }
    await blobs.deletePrefix(ledger)
    expect(await blobs.isEmpty(ledger)).toBe(true)
  })

  test.each(['fsync:signal=SIGKILL:when=1', 'fsync:signal=SIGKILL:when=2'])(
    'what a put of a chunk killed at %s has left goes with its key',
    async (inject) => {
      await blobs.open(session)
      const put = `await blobs.put('${session}chunk', Buffer.from('bytes'))`
      expect(await tamperedWith(inject, `${put}; console.log('survived')`)).toBe('')
      expect(await blobs.isEmpty(session)).toBe(false)
      await blobs.delete([`${session}chunk`])
      expect(await blobs.isEmpty(session)).toBe(true)
    },
  )

  test.each([
    ...[1, 2, 3, 4].map((when) => `unlink:signal=SIGKILL:when=${when}`),
    ...[1, 2, 3].map((when) => `rmdir:signal=SIGKILL:when=${when}`),
    'fsync:signal=SIGKILL:when=1',
  ])('a deletion killed at %s is finished by the next one', async (inject) => {
    for (const name of ['one', 'two']) {
      await blobs.open(`blobs/1/browser/${name}/`)
      await blobs.put(`blobs/1/browser/${name}/first`, Buffer.from('bytes'))
      await blobs.put(`blobs/1/browser/${name}/second`, Buffer.from('bytes'))
    }
    const deletion = `await blobs.deletePrefix('blobs/1/browser/'); console.log('survived')`
    expect(await tamperedWith(inject, deletion)).toBe('')
    await blobs.deletePrefix('blobs/1/browser/')
    expect(await blobs.isEmpty('blobs/1/browser/')).toBe(true)
    expect(existsSync(join(root, 'blobs/1/browser'))).toBe(false)
  })
})
