import type { Blobs } from '../blobs/blobs.ts'
import { inLanes } from '../lanes.ts'
import type { Sql } from '../sql.ts'
import { type LedgerKeys, listLedger, readLedgerEntry, writeLedgerEntry } from './ledger.ts'
import { noteSignedUnder, readLedgerState, readSignedUnder } from './ledger-store.ts'

const entriesAtOnce = 8

/**
 * Signs ledger entries under older master keys again, with the current one, so that the older ones
 * can be removed. Entries that are not genuine stay as they are. Runs once after a rotation, and
 * from the start again if it was interrupted. Returns how many it signed.
 */
export async function signLedgerAgain(sql: Sql, blobs: Blobs, keys: LedgerKeys): Promise<number> {
  const { current, byId } = keys
  if (byId.size === 1 || (await readSignedUnder(sql)) === current) return 0
  const older = { current, byId: new Map([...byId].filter(([id]) => id !== current)) }
  const { lastNumber } = await readLedgerState(sql)
  let signed = 0
  for await (const { places } of listLedger(blobs, 1, lastNumber)) {
    await inLanes(places, entriesAtOnce, async (place) => {
      const entry = await readLedgerEntry(blobs, older, place)
      if (typeof entry !== 'object') return
      // If a worker writes the entry at the same time, it names no browser that this one does not.
      await writeLedgerEntry(blobs, keys, entry)
      signed += 1
    })
  }
  await noteSignedUnder(sql, current)
  return signed
}
