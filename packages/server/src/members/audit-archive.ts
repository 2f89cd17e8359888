import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import type { Blobs } from '../blobs/blobs.ts'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { createDataKey, openPart, sealPart, unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'
import { type ArchivedEntry, deleteAudit, readAuditToArchive } from './audit-store.ts'

/*
 * A blob of the archive is a line of JSON, which holds a data key wrapped by the master key, and sealed
 * bytes: entries as compressed JSON lines. No entry names a person or a recording, so an erasure need
 * not look here.
 */

const prefix = 'audit/archive/'

const entriesAPart = 10_000

/** No browser has this id. */
const owner = { projectId: 0, browserId: 'audit' }

interface Store {
  blobs: Blobs
  masterKeys: MasterKeys
}

/**
 * Moves entries older than `seconds` to the blob store; returns their number. Entries are deleted after
 * they are stored: a crash in between archives them twice, with the same ids.
 */
export async function archiveAudit(
  sql: Sql,
  { blobs, masterKeys }: Store,
  seconds: number,
  onProgress: (archived: number) => void = () => {},
): Promise<number> {
  await blobs.open(prefix)
  for (let archived = 0; ; onProgress(archived)) {
    const entries = await readAuditToArchive(sql, seconds, entriesAPart)
    const [first, last] = [entries[0], entries.at(-1)]
    if (!first || !last) return archived
    const name = [first, last].map(({ id }) => id.padStart(19, '0')).join('-')
    await blobs.put(`${prefix}${name}`, await sealed(masterKeys, entries))
    await deleteAudit(
      sql,
      entries.map(({ id }) => id),
    )
    archived += entries.length
  }
}

async function sealed(masterKeys: MasterKeys, entries: ArchivedEntry[]): Promise<Buffer> {
  const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const key = createDataKey()
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, key, owner)
  const header = JSON.stringify({ masterKeyId, key: Buffer.from(wrapped).toString('base64') })
  const bytes = sealPart(key, header, 0, await promisify(gzip)(lines))
  key.fill(0)
  return Buffer.concat([Buffer.from(`${header}\n`), bytes])
}

/** Yields the archived entries as JSON lines, oldest first. Throws `SealBroken`. */
export async function* readAuditArchive({ blobs, masterKeys }: Store): AsyncGenerator<string> {
  const keys = (await Array.fromAsync(blobs.list(prefix))).sort()
  for (const name of keys) {
    const bytes = Buffer.from(await blobs.get(name))
    const end = bytes.indexOf('\n')
    const header = bytes.toString('utf8', 0, end)
    const { masterKeyId, key } = JSON.parse(header)
    const wrapped = { masterKeyId, wrapped: Buffer.from(key, 'base64') }
    const dataKey = unwrapDataKey(masterKeys, wrapped, owner)
    const lines = openPart(dataKey, header, 0, bytes.subarray(end + 1))
    yield (await promisify(gunzip)(lines)).toString()
  }
}
