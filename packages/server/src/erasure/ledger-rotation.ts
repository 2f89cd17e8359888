import type { Blobs } from '../blobs/blobs.ts'
import { inLanes } from '../lanes.ts'
import type { Sql } from '../sql.ts'
import { type LedgerKeys, listLedger, readLedgerEntry, writeLedgerEntry } from './ledger.ts'
import { noteSignedUnder, readLedgerState, readSignedUnder } from './ledger-store.ts'

const entriesAtOnce = 8

/**
 * Signs the entries of the ledger that stand under older master keys again, with the first one, so
 * that the older ones can be given up. What is not genuine stays as it is. Done once after a
 * rotation, and from the start again where it was broken off. Returns how many it signed.
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
      // Should a worker write it at this moment, it names no browser that this one does not.
      await writeLedgerEntry(blobs, keys, entry)
      signed += 1
    })
  }
  await noteSignedUnder(sql, current)
  return signed
}
