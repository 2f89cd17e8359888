import type { Db } from '../sql.ts'
import { isFaultOfRow, together } from '../together.ts'
import {
  type ChunkPlace,
  type ChunkToConfirm,
  type ChunkToIntend,
  confirmChunks,
  type Intent,
  intendChunk,
  intendNewChunks,
} from './ingest-store.ts'

export interface ChunkWriter {
  intend(chunk: ChunkToIntend): Promise<Intent>
  /** Returns whether the intent still existed. */
  confirm(chunk: ChunkToConfirm): Promise<boolean>
}

/**
 * Writes the rows of uploads. Intents of a project that arrive together share a commit, and so do
 * confirmations. Chunks that a shared statement skips, because they are not new, refused or locked, are
 * written alone.
 */
export function chunkWriter({ sql }: Pick<Db, 'sql'>): ChunkWriter {
  const intendTogether = together<ChunkToIntend, boolean>({
    work: (chunks) => marked(chunks, intendNewChunks(sql, chunks)),
    order: byPlace,
    placeOf: projectOf,
  })
  const confirmTogether = together<ChunkToConfirm, boolean>({
    work: (chunks) => marked(chunks, confirmChunks(sql, chunks, { waits: false })),
    order: byPlace,
    placeOf: projectOf,
  })
  return {
    async intend(chunk) {
      if (await unlessFaultOfRow(intendTogether(chunk))) return { outcome: 'intended' }
      return intendChunk(sql, chunk, chunk.blobKey)
    },
    async confirm(chunk) {
      if (await unlessFaultOfRow(confirmTogether(chunk))) return true
      return (await confirmChunks(sql, [chunk], { waits: true })).has(chunk.blobKey)
    },
  }
}

async function marked(chunks: { blobKey: string }[], done: Promise<Set<string>>) {
  const keys = await done
  return chunks.map(({ blobKey }) => keys.has(blobKey))
}

/** Returns false if one row made the shared statement fail. */
async function unlessFaultOfRow(done: Promise<boolean>): Promise<boolean> {
  try {
    return await done
  } catch (error) {
    if (isFaultOfRow(error)) return false
    throw error
  }
}

const projectOf = ({ projectId }: ChunkPlace) => projectId

function byPlace(a: ChunkPlace, b: ChunkPlace): number {
  return placeText(a) < placeText(b) ? -1 : 1
}

const placeText = ({ sessionId, tab, number }: ChunkPlace) => `${sessionId} ${tab} ${number}`
