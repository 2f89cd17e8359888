import { execFile, execFileSync } from 'node:child_process'
import { createDecipheriv } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { inspect, promisify } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MasterKeyRefused, masterKeyFile, parseMasterKeys } from '../src/blobs/master-keys.ts'
import {
  type ChunkContext,
  createDataKey,
  open,
  rewrap,
  SealBroken,
  seal,
  sealOverheadBytes,
  unwrapDataKey,
  wrapDataKey,
} from '../src/blobs/sealing.ts'
import { runsHere } from './s3-servers/start.ts'

const encoded = (byte: number) => Buffer.alloc(32, byte).toString('base64')

const reasonOf = (work: () => unknown) => {
  try {
    work()
    return 'none'
  } catch (error) {
    return error instanceof SealBroken ? error.reason : error
  }
}

const context: ChunkContext = { projectId: 1, sessionId: 'session', tab: 'tab', number: 0 }

describe('a sealed chunk', () => {
  const contexts = fc.record({
    projectId: fc.integer({ min: 1 }),
    sessionId: fc.uuid(),
    tab: fc.string({ minLength: 1, maxLength: 32 }),
    number: fc.nat(1_000_000),
  })

  test('can be opened with its key in its place, whatever its bytes', () => {
    fc.assert(
      fc.property(contexts, fc.uint8Array({ maxLength: 5_000 }), (place, bytes) => {
        const dataKey = createDataKey()
        const sealed = seal(dataKey, place, bytes)
        expect(sealed.length).toBe(bytes.length + sealOverheadBytes)
        expect(Buffer.compare(open(dataKey, place, sealed), bytes)).toBe(0)
      }),
    )
  })

  test('opens in no other place', () => {
    fc.assert(
      fc.property(contexts, contexts, (place, other) => {
        fc.pre(JSON.stringify(place) !== JSON.stringify(other))
        const dataKey = createDataKey()
        const sealed = seal(dataKey, place, Buffer.from('events'))
        expect(reasonOf(() => open(dataKey, other, sealed))).toBe('authentication')
      }),
    )
  })

  test.each([
    { ...context, projectId: 2 },
    { ...context, sessionId: 'sessio' },
    { ...context, tab: 'tab2' },
    { ...context, number: 1 },
    { ...context, sessionId: 'session","tab', tab: '' },
  ])('does not open in a place that differs in one thing: %o', (other) => {
    const dataKey = createDataKey()
    const sealed = seal(dataKey, context, Buffer.from('events'))
    expect(reasonOf(() => open(dataKey, other, sealed))).toBe('authentication')
  })

  test('does not open when any one bit of it was changed', () => {
    const dataKey = createDataKey()
    const sealed = seal(dataKey, context, Buffer.from('events'))
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Uint8Array.from(sealed)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      const reason = bit < 8 ? 'version' : 'authentication'
      expect(
        reasonOf(() => open(dataKey, context, changed)),
        `bit ${bit}`,
      ).toBe(reason)
    }
  })

  test('does not open when it was cut short at any byte, or grew', () => {
    const dataKey = createDataKey()
    const sealed = seal(dataKey, context, Buffer.from('events'))
    for (let length = 0; length < sealed.length; length++) {
      const reason = length < sealOverheadBytes ? 'length' : 'authentication'
      expect(reasonOf(() => open(dataKey, context, sealed.subarray(0, length)))).toBe(reason)
    }
    const longer = Buffer.concat([sealed, Buffer.of(0)])
    expect(reasonOf(() => open(dataKey, context, longer))).toBe('authentication')
  })

  test('does not open with the data key of another browser', () => {
    const sealed = seal(createDataKey(), context, Buffer.from('events'))
    expect(reasonOf(() => open(createDataKey(), context, sealed))).toBe('authentication')
  })

  test('shows nothing of what it holds, and is never the same twice', () => {
    const dataKey = createDataKey()
    const text = Buffer.from('jane@example.com '.repeat(100))
    const nonces = new Set<string>()
    for (let turn = 0; turn < 1_000; turn++) {
      const sealed = Buffer.from(seal(dataKey, context, text))
      expect(sealed.includes('jane')).toBe(false)
      nonces.add(sealed.subarray(1, 13).toString('hex'))
    }
    expect(nonces.size).toBe(1_000)
  })

  test('is AES-256-GCM in the documented format, so that others can open it', () => {
    const dataKey = createDataKey()
    const sealed = seal(dataKey, context, Buffer.from('events'))
    const decipher = createDecipheriv('aes-256-gcm', dataKey, sealed.subarray(1, 13))
    decipher.setAAD(Buffer.from('["lethe chunk",1,1,"session","tab",0]'))
    decipher.setAuthTag(sealed.subarray(-16))
    const plain = Buffer.concat([decipher.update(sealed.subarray(13, -16)), decipher.final()])
    expect([sealed[0], plain.toString()]).toEqual([1, 'events'])
  })

  test('of the first version opens in every later one', () => {
    const sealed = Buffer.from(
      '01000102030405060708090a0b7df78c1e697ac2b9c3529b69e7432c45e600671850fc',
      'hex',
    )
    const dataKey = Buffer.alloc(32, 7)
    expect(Buffer.from(open(dataKey, context, sealed)).toString()).toBe('events')
  })
})

describe('a wrapped data key', () => {
  const owner = { projectId: 1, browserId: 'browser' }
  const masterKeys = parseMasterKeys(`k1:${encoded(1)}`)

  test('is unwrapped for its owner alone', () => {
    const dataKey = createDataKey()
    const wrapped = wrapDataKey(masterKeys, dataKey, owner)
    expect([wrapped.masterKeyId, wrapped.wrapped.length]).toEqual(['k1', 61])
    expect(Buffer.from(wrapped.wrapped).includes(Buffer.from(dataKey))).toBe(false)
    expect(Buffer.compare(unwrapDataKey(masterKeys, wrapped, owner), dataKey)).toBe(0)
    for (const other of [
      { projectId: 2, browserId: 'browser' },
      { projectId: 1, browserId: 'browse' },
    ]) {
      expect(reasonOf(() => unwrapDataKey(masterKeys, wrapped, other))).toBe('authentication')
    }
  })

  test('is not taken for a chunk, nor a chunk for it', () => {
    const wrapped = wrapDataKey(masterKeys, createDataKey(), owner)
    const masterKey = Buffer.alloc(32, 1)
    expect(reasonOf(() => open(masterKey, context, wrapped.wrapped))).toBe('authentication')
    const chunk = seal(masterKey, context, createDataKey())
    const posing = { masterKeyId: 'k1', wrapped: chunk }
    expect(reasonOf(() => unwrapDataKey(masterKeys, posing, owner))).toBe('authentication')
  })

  test('says which master key it misses', () => {
    const wrapped = wrapDataKey(masterKeys, createDataKey(), owner)
    const others = parseMasterKeys(`k2:${encoded(2)}`)
    expect(reasonOf(() => unwrapDataKey(others, wrapped, owner))).toBe('master_key_unknown')
    expect(() => unwrapDataKey(others, wrapped, owner)).toThrow('k1')
  })

  test('is not unwrapped by another master key of the same id', () => {
    const wrapped = wrapDataKey(masterKeys, createDataKey(), owner)
    const impostor = parseMasterKeys(`k1:${encoded(9)}`)
    expect(reasonOf(() => unwrapDataKey(impostor, wrapped, owner))).toBe('authentication')
  })

  test('is not unwrapped when it was cut short', () => {
    const { masterKeyId, wrapped } = wrapDataKey(masterKeys, createDataKey(), owner)
    const cut = { masterKeyId, wrapped: wrapped.subarray(0, 60) }
    expect(reasonOf(() => unwrapDataKey(masterKeys, cut, owner))).toBe('length')
  })

  test('moves to a new master key, after which the old one can be taken away', () => {
    const dataKey = createDataKey()
    const old = wrapDataKey(masterKeys, dataKey, owner)
    const both = parseMasterKeys(`k2:${encoded(2)},k1:${encoded(1)}`)
    expect(Buffer.compare(unwrapDataKey(both, old, owner), dataKey)).toBe(0)
    const renewed = rewrap(both, old, owner)
    expect(renewed?.masterKeyId).toBe('k2')
    expect(rewrap(both, renewed!, owner)).toBeUndefined()
    const onlyNew = parseMasterKeys(`k2:${encoded(2)}`)
    expect(Buffer.compare(unwrapDataKey(onlyNew, renewed!, owner), dataKey)).toBe(0)
  })
})

describe('the setting MASTER_KEY', () => {
  test('holds one or several keys, of which the first wraps', () => {
    const keys = parseMasterKeys(` new:${encoded(1)} ,old:${encoded(2)}\n`)
    expect(keys.current.id).toBe('new')
    expect([...keys.byId.keys()]).toEqual(['new', 'old'])
    const urlSafe = Buffer.alloc(32, 0xfb).toString('base64url')
    expect(parseMasterKeys(`k:${urlSafe}`).current.key.export()).toEqual(Buffer.alloc(32, 0xfb))
  })

  test.each([
    ['nothing', ''],
    ['nothing but separators', ' , '],
    ['a key without an id', encoded(1)],
    ['an empty id', `:${encoded(1)}`],
    ['an empty key', 'k1:'],
    ['a blank in the id', `k 1:${encoded(1)}`],
    ['a long id', `${'k'.repeat(33)}:${encoded(1)}`],
    ['31 bytes', `k1:${Buffer.alloc(31, 1).toString('base64')}`],
    ['33 bytes', `k1:${Buffer.alloc(33, 1).toString('base64')}`],
    ['what is not base64', `k1:${encoded(1).slice(0, -2)}!=`],
    ['more after the key', `k1:${encoded(1)}:more`],
    ['an id twice', `k1:${encoded(1)},k1:${encoded(2)}`],
    ['a second key without its key', `k1:${encoded(1)},k2`],
  ])('is refused when it holds %s, without showing a key', (_, text) => {
    let refusal: unknown
    try {
      parseMasterKeys(text)
    } catch (error) {
      refusal = error
    }
    expect(refusal).toBeInstanceOf(MasterKeyRefused)
    expect(inspect(refusal)).not.toContain(encoded(1).slice(0, 20))
  })

  test('gives keys that a log does not show', () => {
    const keys = parseMasterKeys(`k1:${encoded(1)}`)
    const shown = inspect(keys, { depth: 9, showHidden: true }) + JSON.stringify([keys.current])
    expect(shown).not.toContain(encoded(1).slice(0, 20))
    expect(shown).not.toContain('01 01 01')
  })
})

describe('the master key file', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'lethe-keys-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const module = resolve(import.meta.dirname, '../src/blobs/master-keys.ts')
  const processArguments = (path: string) => [
    '--input-type=module',
    '-e',
    `const { masterKeyFile } = await import(${JSON.stringify(module)})
     const { current } = await masterKeyFile(${JSON.stringify(path)})
     console.log(current.id, current.key.export().toString('base64'))`,
  ]

  test('is made once, for its owner alone, and read from then on', async () => {
    const path = join(folder, 'keys', 'master.key')
    const made = await masterKeyFile(path)
    const read = await masterKeyFile(path)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'keys'))).mode & 0o777).toBe(0o700)
    expect(read.current.id).toBe(made.current.id)
    expect(read.current.key.equals(made.current.key)).toBe(true)
    expect(await readdir(join(folder, 'keys'))).toEqual(['master.key'])
    const other = await masterKeyFile(join(folder, 'other.key'))
    expect(other.current.key.equals(made.current.key)).toBe(false)
  })

  test('gives all processes that start at once the same key', async () => {
    const path = join(folder, 'master.key')
    const run = promisify(execFile)
    const started = Array.from({ length: 6 }, () => run(process.execPath, processArguments(path)))
    const printed = (await Promise.all(started)).map(({ stdout }) => stdout)
    expect(printed[0]).toMatch(/^k[0-9a-f]{8} \S{44}\n$/)
    expect(new Set(printed).size).toBe(1)
    const within = Array.from({ length: 20 }, () => masterKeyFile(join(folder, 'second.key')))
    const keys = (await Promise.all(within)).map(({ current }) =>
      current.key.export().toString('hex'),
    )
    expect(new Set(keys).size).toBe(1)
    expect((await readdir(folder)).sort()).toEqual(['master.key', 'second.key'])
  })

  test('holds several keys after a rotation, the first of which wraps', async () => {
    const path = join(folder, 'master.key')
    await masterKeyFile(path)
    const before = await readFile(path, 'utf8')
    await writeFile(path, `new:${encoded(1)}\n${before}`)
    const keys = await masterKeyFile(path)
    expect([keys.current.id, keys.byId.size]).toEqual(['new', 2])
  })

  test.each(['640', '604', '660'])(
    'is refused when others may read or write it (%o)',
    async (mode) => {
      const path = join(folder, 'master.key')
      await masterKeyFile(path)
      await chmod(path, Number.parseInt(mode, 8))
      await expect(masterKeyFile(path)).rejects.toThrow('chmod 600')
    },
  )

  test('is refused in the folder of the database or the blobs, also through a link', async () => {
    const blobs = join(folder, 'blobs')
    await mkdir(join(blobs, 'deep'), { recursive: true })
    await symlink(blobs, join(folder, 'link'))
    for (const path of ['blobs/master.key', 'blobs/deep/master.key', 'link/master.key']) {
      const keys = masterKeyFile(join(folder, path), [join(folder, 'database'), blobs])
      await expect(keys, path).rejects.toThrow(MasterKeyRefused)
      expect(existsSync(join(folder, path))).toBe(false)
    }
    await masterKeyFile(join(blobs, 'master.key'))
    await symlink(join(blobs, 'master.key'), join(folder, 'linked.key'))
    await expect(masterKeyFile(join(folder, 'linked.key'), [blobs])).rejects.toThrow(
      MasterKeyRefused,
    )
    await masterKeyFile(join(folder, 'blobs-of-another.key'), [blobs])
  })

  test('that is empty or torn is refused, and never replaced by a new key', async () => {
    const path = join(folder, 'master.key')
    for (const text of ['', 'k1:AAAA', 'k1']) {
      await writeFile(path, text, { mode: 0o600 })
      await expect(masterKeyFile(path), text).rejects.toThrow(MasterKeyRefused)
      expect(await readFile(path, 'utf8')).toBe(text)
    }
  })

  const strace = runsHere(
    'A master key across a power cut',
    existsSync('/usr/bin/strace') ? [] : ['strace'],
    process.env.CI === 'true',
  )
  if (!strace.runs) test.skip(strace.title, () => {})
  test.runIf(strace.runs)('is durable before anything is wrapped with it', async () => {
    const path = join(folder, 'master.key')
    const record = join(folder, 'record')
    const traced = ['-f', '-y', '-qq', '-e', 'trace=fsync,link,unlink', '-o', record]
    execFileSync('strace', [...traced, process.execPath, ...processArguments(path)])
    const calls = (await readFile(record, 'utf8'))
      .split('\n')
      .filter((line) => line.includes(folder))
      .map((line) => line.replace(/^\d+ +/, '').replaceAll(folder, ''))
    expect(
      calls.map((call) =>
        call.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '…').replace(/\d+</, '<'),
      ),
    ).toEqual([
      'fsync(</.master-key-…>) = 0',
      'link("/.master-key-…", "/master.key") = 0',
      'unlink("/.master-key-…") = 0',
      'fsync(<>) = 0',
    ])
  })
})
