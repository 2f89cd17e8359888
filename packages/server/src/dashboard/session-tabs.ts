import { listTabs } from '../recordings/session-store.ts'
import type { Sql } from '../sql.ts'

/** The tabs of a session for the player, in the order they began. */
export async function tabsOf(
  sql: Sql,
  projectId: number,
  { id, startedAt }: { id: string; startedAt: string },
) {
  const tabs = await listTabs(sql, projectId, id)
  return tabs.map(({ tab, chunks, bytes, firstChunkAt, lastChunkAt }) => ({
    id: tab,
    chunks,
    bytes,
    firstChunkAt: firstChunkAt ?? startedAt,
    lastChunkAt: lastChunkAt ?? startedAt,
  }))
}
