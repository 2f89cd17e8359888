import type { Sql } from '../sql.ts'
import { deleteOldAudit, forgetWhatIsGone } from './audit-store.ts'

const entriesAPart = 1_000

/** Deletes what the audit log keeps no longer, and what names persons and recordings that are gone. */
export async function keepAudit(sql: Sql, days: number): Promise<void> {
  while ((await deleteOldAudit(sql, days, entriesAPart)) === entriesAPart);
  while ((await forgetWhatIsGone(sql, entriesAPart)) === entriesAPart);
}
