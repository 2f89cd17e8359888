import { randomUUID } from 'node:crypto'
import { BlobFault, type Blobs } from './blobs.ts'

/** Does once with a blob of its own whatever ingestion and erasure will do with others. */
export async function probe(blobs: Omit<Blobs, 'check'>): Promise<void> {
  const prefix = `check/${randomUUID()}/`
  const bytes = new TextEncoder().encode(prefix)
  await blobs.open(prefix)
  await blobs.put(`${prefix}deleted`, bytes)
  await blobs.delete([`${prefix}deleted`])
  await blobs.put(`${prefix}read`, bytes)
  const read = await blobs.get(`${prefix}read`)
  await blobs.deletePrefix(prefix)
  if (Buffer.compare(read, bytes) !== 0) {
    throw new BlobFault('failed', 'The blob store returned other bytes than were written.')
  }
  if (!(await blobs.isEmpty(prefix))) {
    throw new BlobFault('not_empty', 'The blob store still lists what it said was deleted.')
  }
}
