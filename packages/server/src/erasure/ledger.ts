import { BlobFault, type Blobs, ledgerPrefix } from '../blobs/blobs.ts'
import type { ClaimedJob } from './claim.ts'

/*
 * The ledger: one blob for each person that is gone, outside of the database, so that a backup of
 * the database that brings a person back can be found out. It holds internal ids and nothing else.
 */

/** What the ledger says of one completed erasure. */
export interface LedgerEntry {
  version: 1
  jobId: string
  projectId: number
  personId: string
  keepRecordings: boolean
  /** When the erasure was requested. */
  createdAt: string
  /** Empty where the recordings are kept. */
  browserIds: string[]
}

const entryKey = (projectId: number, jobId: string) => `${ledgerPrefix(projectId)}${jobId}.json`

/**
 * Writes the entry of a job. Whoever worked on the job before, or took it over since, may have
 * written it and then removed some of the browsers, so theirs are kept. The caller has read
 * `browserIds` before this reads the entry: what it no longer found there stands in the entry.
 */
export async function writeLedgerEntry(
  blobs: Blobs,
  job: ClaimedJob,
  browserIds: string[],
): Promise<void> {
  const { projectId, id: jobId, personId, keepRecordings, createdAt } = job
  const earlier = await readLedgerEntry(blobs, projectId, jobId)
  const entry: LedgerEntry = {
    version: 1,
    jobId,
    projectId,
    personId,
    keepRecordings,
    createdAt,
    browserIds: [...new Set([...(earlier?.browserIds ?? []), ...browserIds])],
  }
  const bytes = new TextEncoder().encode(JSON.stringify(entry))
  try {
    await blobs.put(entryKey(projectId, jobId), bytes)
  } catch (error) {
    if (!(error instanceof BlobFault && error.code === 'prefix_gone')) throw error
    // The first entry of a project.
    await blobs.open(ledgerPrefix(projectId))
    await blobs.put(entryKey(projectId, jobId), bytes)
  }
}

export async function readLedgerEntry(
  blobs: Blobs,
  projectId: number,
  jobId: string,
): Promise<LedgerEntry | undefined> {
  try {
    const bytes = await blobs.get(entryKey(projectId, jobId))
    return JSON.parse(new TextDecoder().decode(bytes)) as LedgerEntry
  } catch (error) {
    if (error instanceof BlobFault && error.code === 'blob_missing') return undefined
    throw error
  }
}

/** Which jobs have an entry, in parts of some hundred. */
export async function* listLedger(
  blobs: Blobs,
): AsyncGenerator<{ projectId: number; jobId: string }[]> {
  let part: { projectId: number; jobId: string }[] = []
  for await (const key of blobs.list('ledger/')) {
    const [, projectId, jobId] = /^ledger\/(\d+)\/([0-9a-f-]{36})\.json$/.exec(key) ?? []
    if (projectId === undefined || jobId === undefined) continue
    part.push({ projectId: Number(projectId), jobId })
    if (part.length === 500) {
      yield part
      part = []
    }
  }
  if (part.length > 0) yield part
}
