import { type Chunk, sizeOf, type Target } from './chunk.ts'

const BUFFER_BYTES_MAXIMUM = 16 * 1024 * 1024

export type Buffer = ReturnType<typeof createBuffer>

/** Chunks that are not stored yet, in order, up to a size. `drained`: it was full, and has room. */
export function createBuffer(drained: () => void) {
  let chunks: Chunk[] = []
  let full = false
  /** One bit for each who holds: an identify (1), a setting (2). */
  let holds = 0

  const total = () => {
    let sum = 0
    for (const chunk of chunks) sum += sizeOf(chunk)
    return sum
  }
  const keep = (isKept: (chunk: Chunk) => boolean) => {
    chunks = chunks.filter(isKept)
  }
  const isReady = ({ browser, held }: Chunk) => browser !== '' && !held
  return {
    all: () => chunks,
    keep,
    has: (chunk: Chunk) => chunks.includes(chunk),
    /** Those of which it is known whose they are. */
    ready: () => chunks.filter(isReady),
    next: () => chunks.find(isReady),
    /** Returns whether there was room. */
    add(chunk: Chunk) {
      full ||= total() + sizeOf(chunk) > BUFFER_BYTES_MAXIMUM
      chunk.held = (chunk.held ?? 0) | holds
      if (!full) chunks.push(chunk)
      return !full
    },
    remove(chunk: Chunk) {
      keep((each) => each !== chunk)
      if (!full || total() > BUFFER_BYTES_MAXIMUM / 2) return
      full = false
      drained()
    },
    /** What waits for the ids of a generation belongs there; without them it goes. */
    settle(generation: string, to?: Target) {
      const isWaiting = (chunk: Chunk) => !chunk.browser && chunk.session === generation
      for (const chunk of chunks.filter(isWaiting)) Object.assign(chunk, to)
      if (!to) keep((chunk) => !isWaiting(chunk))
    },
    /** What comes from here on waits for `release`, which keeps it or throws it away. */
    hold(by: number) {
      holds |= by
    },
    release(isKept: boolean, by: number) {
      holds &= ~by
      if (!isKept) keep(({ held = 0 }) => !(held & by))
      for (const chunk of chunks) chunk.held = (chunk.held ?? 0) & ~by
    },
    /** Lets go of what is held and older, back to a snapshot that can be begun with. */
    trim(before: number) {
      const start = chunks.findLast(({ held, isSnapshot, to }) => held && isSnapshot && to < before)
      if (start) chunks = chunks.filter((each) => !each.held || each.to >= start.to)
    },
  }
}
