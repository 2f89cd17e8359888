import { type Chunk, sizeOf, type Target } from './chunk.ts'

const BUFFER_BYTES_MAXIMUM = 16 * 1024 * 1024

export type Buffer = ReturnType<typeof createBuffer>

/**
 * Chunks that are not stored yet, in order, up to a total size. Calls `drained` when it was full
 * and has room again.
 */
export function createBuffer(drained: () => void) {
  let chunks: Chunk[] = []
  let full = false
  /** One bit per reason to hold chunks: an identify (1), a setting (2). */
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
    /** Those that can be sent. */
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
    /** Gives chunks that wait for the IDs of a generation their target; without one drops them. */
    settle(generation: string, to?: Target) {
      const isWaiting = (chunk: Chunk) => !chunk.browser && chunk.session === generation
      for (const chunk of chunks.filter(isWaiting)) Object.assign(chunk, to)
      if (!to) keep((chunk) => !isWaiting(chunk))
    },
    /** Holds chunks added from now on until `release`, which keeps or drops them. */
    hold(by: number) {
      holds |= by
    },
    release(isKept: boolean, by: number) {
      holds &= ~by
      if (!isKept) keep(({ held = 0 }) => !(held & by))
      for (const chunk of chunks) chunk.held = (chunk.held ?? 0) & ~by
    },
    /** Drops older held chunks, back to a snapshot that the recording can begin with. */
    trim(before: number) {
      const start = chunks.findLast(({ held, isSnapshot, to }) => held && isSnapshot && to < before)
      if (start) chunks = chunks.filter((each) => !each.held || each.to >= start.to)
    },
  }
}
