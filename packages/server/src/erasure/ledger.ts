import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { CompactSign, compactVerify } from 'jose'
import { BlobFault, BlobMissing, type Blobs, isNoBlob } from '../blobs/blobs.ts'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { isUuid } from '../http/parameters.ts'

/*
 * The ledger: blobs outside the database that say who was erased, so that persons whom a restored
 * backup brings back are found. It contains internal IDs and nothing else. Write access to the blob
 * store is not enough to forge an entry: each has a MAC over its key and content, under a key
 * derived from the master key.
 */

/** The entry of one erasure, or a part of it if the erasure has very many browsers. */
export interface LedgerEntry {
  version: 2
  /** Counted per installation. */
  number: number
  jobId: string
  projectId: number
  personId: string
  keepRecordings: boolean
  /** When the erasure was requested. */
  createdAt: string
  /** Part 0 is written last: if it exists, all do. */
  part: number
  /** Empty if the recordings are kept. */
  browserIds: string[]
}

/** The MAC keys of an installation, by the IDs of the master keys they are derived from. */
export interface LedgerKeys {
  current: string
  byId: ReadonlyMap<string, KeyObject>
}

export function deriveLedgerKeys(masterKeys: MasterKeys, installation: string): LedgerKeys {
  const derive = (key: KeyObject) =>
    createSecretKey(Buffer.from(hkdfSync('sha256', key, installation, 'lethe ledger', 32)))
  return {
    current: masterKeys.current.id,
    byId: new Map([...masterKeys.byId].map(([id, key]) => [id, derive(key)])),
  }
}

export type LedgerPlace = Pick<LedgerEntry, 'number' | 'projectId' | 'jobId' | 'part'>

const entriesAGroup = 1_000

const algorithm = 'HS256'

/** Groups are folders, so that new entries are found without listing all others. */
const groupOf = (number: number) => Math.floor(number / entriesAGroup)

const groupPrefix = (group: number) => `ledger/${String(group).padStart(9, '0')}/`

export function ledgerKey({ number, projectId, jobId, part }: LedgerPlace): string {
  const name = `${number}-${projectId}-${jobId}${part > 0 ? `-${part}` : ''}`
  return `${groupPrefix(groupOf(number))}${name}.jws`
}

function placeOf(key: string): LedgerPlace | undefined {
  const [, number, projectId, jobId, part = '0'] =
    /^ledger\/\d{9}\/(\d{1,15})-(\d{1,9})-([0-9a-f-]{36})(?:-(\d{1,9}))?\.jws$/.exec(key) ?? []
  // Anybody may have written the name, and PostgreSQL refuses statements with invalid UUIDs.
  if (jobId === undefined || !isUuid(jobId)) return undefined
  const place = { number: Number(number), projectId: Number(projectId), jobId, part: Number(part) }
  return ledgerKey(place) === key ? place : undefined
}

export async function writeLedgerEntry(
  blobs: Blobs,
  { current, byId }: LedgerKeys,
  entry: LedgerEntry,
): Promise<void> {
  const key = ledgerKey(entry)
  const payload = new TextEncoder().encode(JSON.stringify({ key, ...entry }))
  const jws = await new CompactSign(payload)
    .setProtectedHeader({ alg: algorithm, kid: current, typ: 'lethe-ledger+jws' })
    .sign(byId.get(current) as KeyObject)
  const bytes = new TextEncoder().encode(jws)
  try {
    await blobs.put(key, bytes)
  } catch (error) {
    if (!(error instanceof BlobFault && error.code === 'prefix_gone')) throw error
    // The first entry of a group.
    await blobs.open(key.slice(0, key.lastIndexOf('/') + 1))
    await blobs.put(key, bytes)
  }
}

/** `refused`: the entry was not written by this installation, or not under this key. */
export async function readLedgerEntry(
  blobs: Blobs,
  keys: LedgerKeys,
  place: LedgerPlace,
): Promise<LedgerEntry | 'missing' | 'refused'> {
  const key = ledgerKey(place)
  let bytes: Uint8Array
  try {
    bytes = await blobs.get(key)
  } catch (error) {
    if (!isNoBlob(error)) throw error
    return error instanceof BlobMissing ? 'missing' : 'refused'
  }
  try {
    const { payload } = await compactVerify(
      bytes,
      ({ kid = '' }) => {
        const found = keys.byId.get(kid)
        if (!found) throw new Error('This master key is not known.')
        return found
      },
      { algorithms: [algorithm] },
    )
    const { key: signedKey, ...entry } = JSON.parse(new TextDecoder().decode(payload))
    return signedKey === key ? (entry as LedgerEntry) : 'refused'
  } catch {
    return 'refused'
  }
}

/** The ledger ends after this many empty groups, unless the database knows of later entries. */
const emptyGroupsMaximum = 3

const entriesAPart = 500

/**
 * Lists the entries from `from` on, in parts, and counts the blobs that have foreign names. `until`
 * is the last number that the database knows.
 */
export async function* listLedger(
  blobs: Blobs,
  from: number,
  until: number,
): AsyncGenerator<{ places: LedgerPlace[]; strange: number }> {
  for (let group = groupOf(from), empty = 0; ; group++) {
    let part = { places: [] as LedgerPlace[], strange: 0 }
    let isEmpty = true
    for await (const key of blobs.list(groupPrefix(group))) {
      isEmpty = false
      const place = placeOf(key)
      if (!place) part.strange += 1
      else if (place.number >= from) part.places.push(place)
      if (part.places.length < entriesAPart) continue
      yield part
      part = { places: [], strange: 0 }
    }
    if (part.places.length > 0 || part.strange > 0) yield part
    empty = isEmpty ? empty + 1 : 0
    if (empty >= emptyGroupsMaximum && group >= groupOf(until)) return
  }
}
