/** Compares the speed of sealing with that of hashing the same bytes: `node bench/sealing.ts`. */
import { createHash, randomBytes } from 'node:crypto'
import { createDataKey, open, seal } from '../packages/server/src/blobs/sealing.ts'
import { median } from './measure.ts'

const rounds = 15
const roundBytes = 32 * 1024 * 1024

const dataKey = createDataKey()
const context = { projectId: 1, sessionId: 'session', tab: 'tab', number: 1 }

/** The processor time of this process, which other load hardly affects. */
const processorSeconds = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Runs the functions in turns, so that other load affects all of them. Returns the median of each. */
function medians(works: Record<string, () => unknown>): Record<string, number> {
  const seconds = Object.fromEntries(Object.keys(works).map((name) => [name, [] as number[]]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, work] of Object.entries(works)) {
      const start = processorSeconds()
      work()
      // The first round is a warm-up.
      if (round > 0) seconds[name]!.push(processorSeconds() - start)
    }
  }
  return Object.fromEntries(Object.entries(seconds).map(([name, all]) => [name, median(all)]))
}

function megabytesASecond(size: number) {
  const plain = randomBytes(size)
  const sealed = seal(dataKey, context, plain)
  const times = Math.ceil(roundBytes / size)
  const repeat = (work: () => unknown) => () => {
    for (let time = 0; time < times; time++) work()
  }
  const seconds = medians({
    sha256: repeat(() => createHash('sha256').update(plain).digest()),
    seal: repeat(() => seal(dataKey, context, plain)),
    open: repeat(() => open(dataKey, context, sealed)),
  })
  const rates = Object.fromEntries(
    Object.entries(seconds).map(([name, value]) => [
      `${name} MB/s`,
      Math.round((times * size) / value / 1e6),
    ]),
  )
  return {
    bytes: size,
    ...rates,
  }
}

console.log('Sealing in memory, processor time, median of', rounds, 'rounds')
console.table([4_096, 65_536, 1_048_576].map(megabytesASecond))
