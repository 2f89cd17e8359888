import { readStanding, type Standing } from '../src/erasure/ledger-store.ts'
import { type LedgerWatch, watchLedger } from '../src/erasure/ledger-watch.ts'
import { type Reapplied, type ReapplyTerms, reapplyLedger } from '../src/erasure/reapply.ts'
import { writeAudit } from '../src/members/audit-store.ts'
import { connect } from '../src/sql.ts'
import type { Opened } from './open.ts'
import { type OpenedErasure, statementSeconds } from './open-erasure.ts'

/** The option of `serve` and `worker`, under its name. */
export const withoutLedger = {
  'without-ledger': {
    type: 'boolean',
    description:
      'Start even if the ledger of erasures, or part of it, is missing. People erased in that part may be back.',
  },
} as const

/** Compares the database with the ledger, and logs in the audit log what was erased again. */
export async function compareLedger(
  { db }: Opened,
  { options }: Pick<OpenedErasure, 'options'>,
  isWithout = false,
  onProgress?: ReapplyTerms['onProgress'],
): Promise<Reapplied> {
  const terms = { withoutLedger: isWithout, ...(onProgress && { onProgress }) }
  const reapplied = await reapplyLedger(options, terms)
  const { persons, browsers } = reapplied
  if (persons + browsers > 0) {
    const details = { persons, browsers }
    const note = { action: 'database.restored' as const, memberId: null, addressRange: null }
    await writeAudit(db.sql, { ...note, details })
  }
  return reapplied
}

/** Compares before requests are served, and whenever the database may have gone back in time. */
export async function compareAndWatch(
  opened: Opened,
  erasure: OpenedErasure,
  isWithout = false,
): Promise<LedgerWatch> {
  const last: Standing = await readStanding(erasure.options.db.sql)
  await compareLedger(opened, erasure, isWithout)
  // A pooler hides a change of the server behind it.
  const pooled = opened.connection.pooler && { watchSeconds: 2, isPooled: true }
  // Watches the connections of requests, not those of erasures.
  const options = { ...erasure.options, db: opened.db, ...pooled }
  return watchLedger(options, last, () => compareAfresh(opened, erasure))
}

/** Opens new connections: the old ones may lead to a lost machine and would time out. */
async function compareAfresh(opened: Opened, { options, ...rest }: OpenedErasure): Promise<void> {
  const db = connect({ connection: opened.connection, poolSize: 2, statementSeconds })
  const keySql = options.keySql === options.db.sql ? db.sql : options.keySql
  try {
    await compareLedger({ ...opened, db }, { ...rest, options: { ...options, db, keySql } })
  } finally {
    await db.end()
  }
}
