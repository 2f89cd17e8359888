/**
 * What sealing costs: beside copying and hashing the same bytes, and beside what a chunk costs
 * anyway, that is a durable put into the folder and the same done with bare system calls.
 *
 *   node bench/sealing.ts
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, open, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFolder } from '../packages/server/src/blobs/filesystem.ts'
import { parseMasterKeys } from '../packages/server/src/blobs/master-keys.ts'
import {
  createDataKey,
  open as openSealed,
  seal,
  sealOverheadBytes,
  unwrapDataKey,
  wrapDataKey,
} from '../packages/server/src/blobs/sealing.ts'

const rounds = 15
const roundBytes = 32 * 1024 * 1024
const putsARound = 60

const dataKey = createDataKey()
const context = { projectId: 1, sessionId: 'session', tab: 'tab', number: 1 }

type Clock = () => number

/** Seconds of this process on a processor: what the neighbours do hardly counts. */
const processorSeconds: Clock = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
const wallSeconds: Clock = () => performance.now() / 1e3

/** Runs the works in turn, so that a noisy neighbour meets all of them; the median of each. */
async function medians(
  clock: Clock,
  works: Record<string, () => unknown>,
): Promise<Record<string, number>> {
  const seconds = Object.fromEntries(Object.keys(works).map((name) => [name, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, work] of Object.entries(works)) {
      const start = clock()
      await work()
      // The first round is the warming up.
      if (round > 0) seconds[name]!.push(clock() - start)
    }
  }
  return Object.fromEntries(
    Object.entries(seconds).map(([name, all]) => [name, all.sort((a, b) => a - b)[rounds >> 1]!]),
  )
}

const rounded = (value: number) => Number(value.toPrecision(3))

async function bytesASecond(size: number) {
  const plain = randomBytes(size)
  const target = Buffer.alloc(size)
  const sealed = seal(dataKey, context, plain)
  const times = Math.ceil(roundBytes / size)
  const repeat = (work: () => unknown) => () => {
    for (let time = 0; time < times; time++) work()
  }
  const seconds = await medians(processorSeconds, {
    copy: repeat(() => plain.copy(target)),
    sha256: repeat(() => createHash('sha256').update(plain).digest()),
    seal: repeat(() => seal(dataKey, context, plain)),
    open: repeat(() => openSealed(dataKey, context, sealed)),
  })
  const megabytes = Object.fromEntries(
    Object.entries(seconds).map(([name, value]) => [
      `${name} MB/s`,
      Math.round((times * size) / value / 1e6),
    ]),
  )
  return {
    bytes: size,
    ...megabytes,
    'seal µs': rounded((seconds.seal! / times) * 1e6),
    'open µs': rounded((seconds.open! / times) * 1e6),
    'added bytes': `${rounded((sealOverheadBytes / size) * 100)} %`,
  }
}

async function putsASecond(size: number, folder: string) {
  const blobs = await openFolder(join(folder, 'blobs'))
  const bare = join(folder, 'bare')
  await mkdir(bare, { recursive: true })
  await blobs.open('blobs/1/browser/session/')
  const plain = randomBytes(size)
  let number = 0
  const repeat = (work: (name: string) => Promise<void>) => async () => {
    for (let time = 0; time < putsARound; time++) await work(`chunk-${number++}`)
  }
  const put = (name: string, bytes: Uint8Array) =>
    blobs.put(`blobs/1/browser/session/${name}`, bytes)
  const seconds = await medians(wallSeconds, {
    floor: repeat((name) => bareWrite(bare, name, plain)),
    plain: repeat((name) => put(name, plain)),
    sealed: repeat((name) => put(name, seal(dataKey, { ...context, number }, plain))),
  })
  await blobs.deletePrefix('blobs/1/browser/')
  await rm(bare, { recursive: true })
  const milliseconds = (name: string) => rounded((seconds[name]! / putsARound) * 1e3)
  return {
    bytes: size,
    'bare write, 2 fsyncs ms': milliseconds('floor'),
    'put ms': milliseconds('plain'),
    'seal and put ms': milliseconds('sealed'),
    'sealed / plain': rounded(seconds.sealed! / seconds.plain!),
    'sealed / bare': rounded(seconds.sealed! / seconds.floor!),
  }
}

/** The least that makes a new file durable under its name. */
async function bareWrite(folder: string, name: string, bytes: Uint8Array): Promise<void> {
  const file = await open(join(folder, '.new'), 'w')
  await file.write(bytes)
  await file.sync()
  await file.close()
  await rename(join(folder, '.new'), join(folder, name))
  const directory = await open(folder)
  await directory.sync()
  await directory.close()
}

async function wrapsASecond() {
  const masterKeys = parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)
  const owner = { projectId: 1, browserId: 'browser' }
  const wrapped = wrapDataKey(masterKeys, dataKey, owner)
  const times = 5_000
  const seconds = await medians(processorSeconds, {
    wrap: () => {
      for (let time = 0; time < times; time++) wrapDataKey(masterKeys, dataKey, owner)
    },
    unwrap: () => {
      for (let time = 0; time < times; time++) unwrapDataKey(masterKeys, wrapped, owner)
    },
  })
  return Object.fromEntries(
    Object.entries(seconds).map(([name, value]) => [`${name} µs`, rounded((value / times) * 1e6)]),
  )
}

const folder = await mkdtemp(join(tmpdir(), 'lethe-bench-'))
try {
  console.log('\nSealing in memory, processor time, median of', rounds, 'rounds')
  const sizes = [4_096, 65_536, 1_048_576]
  console.table(await inTurn(sizes, bytesASecond))
  console.log('A durable put into the folder, one after the other, wall time')
  console.table(await inTurn(sizes, (size) => putsASecond(size, folder)))
  console.log('Data keys, processor time')
  console.table([await wrapsASecond()])
} finally {
  await rm(folder, { recursive: true })
}

async function inTurn<T>(sizes: number[], work: (size: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (const size of sizes) results.push(await work(size))
  return results
}
