import type { MasterKeys } from '../blobs/master-keys.ts'
import { createDataKey, rewrap, unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'

/**
 * The data keys of browsers, in the database of KEY_DATABASE_URL or in the main one. A data key is
 * never kept in memory beyond the work at hand: once its row is destroyed nothing opens a blob.
 */
export interface BrowserKeys {
  sql: Sql
  /** The same database by a pipelined connection, for the one read that each chunk needs. */
  short?: Sql
  masterKeys: MasterKeys
}

/** Keys destroyed, checked or rewrapped by one statement. */
const keysAPart = 1_000

/** Longer than any start of a session takes to insert the browser of a key it has made. */
const uncheckedMinutes = 10

/**
 * Makes the data key of a browser that is about to be inserted. The key comes first: a browser
 * without one could take no chunk, a key without a browser is collected.
 */
export async function createBrowserKey(
  { sql, masterKeys }: BrowserKeys,
  projectId: number,
  browserId: string,
): Promise<void> {
  const dataKey = createDataKey()
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, dataKey, { projectId, browserId })
  dataKey.fill(0)
  await sql`
    insert into browser_keys (project_id, browser_id, master_key_id, wrapped)
    values (${projectId}, ${browserId}, ${masterKeyId}, ${wrapped})`
}

/**
 * The data key of a browser, to be filled with zeros after use; undefined where it was destroyed.
 * Throws `SealBroken` where its master key is not configured.
 */
export async function readBrowserKey(
  { sql, short = sql, masterKeys }: BrowserKeys,
  projectId: number,
  browserId: string,
): Promise<Uint8Array | undefined> {
  const [row] = await short<{ masterKeyId: string; wrapped: Buffer }>`
    select master_key_id as "masterKeyId", wrapped
    from browser_keys
    where project_id = ${projectId} and browser_id = ${browserId}`
  return row && unwrapDataKey(masterKeys, row, { projectId, browserId })
}

/** From its commit on no blob of these browsers can be opened, whatever copies of it there are. */
export async function destroyBrowserKeys(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<string[]> {
  const destroyed: string[] = []
  for (let start = 0; start < browserIds.length; start += keysAPart) {
    const rows = await sql<{ id: string }>`
      delete from browser_keys
      where project_id = ${projectId}
        and browser_id = any(${browserIds.slice(start, start + keysAPart)}::uuid[])
      returning browser_id as id`
    for (const { id } of rows) destroyed.push(id)
  }
  return destroyed
}

/** Of these browsers, those that have a key. */
export async function findKeyedBrowsers(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select browser_id as id from browser_keys
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])`
  return rows.map(({ id }) => id)
}

export async function countBrowserKeys(
  sql: Sql,
  projectId: number,
  browserIds: readonly string[],
): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::integer as count
    from browser_keys
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])`
  return row?.count ?? 0
}

/**
 * Destroys the keys whose browsers never came to be, because the service went down in between or
 * the main database refused. Each key is looked at once, some minutes after it was made.
 */
export async function collectUnusedKeys(sql: Sql, keySql: Sql): Promise<number> {
  let collected = 0
  for (;;) {
    const keys = await keySql<{ projectId: number; browserId: string }>`
      select project_id as "projectId", browser_id as "browserId"
      from browser_keys
      where unchecked_since < now() - ${uncheckedMinutes} * interval '1 minute'
      order by unchecked_since
      limit ${keysAPart}`
    for (const [projectId, its] of Map.groupBy(keys, (key) => key.projectId)) {
      const ids = its.map(({ browserId }) => browserId)
      const browsers = await sql<{ id: string }>`
        select id from browsers where project_id = ${projectId} and id = any(${ids}::uuid[])`
      const used = new Set(browsers.map((browser) => browser.id))
      await keySql`
        update browser_keys set unchecked_since = null
        where project_id = ${projectId} and browser_id = any(${[...used]}::uuid[])`
      const unused = ids.filter((id) => !used.has(id))
      collected += (await destroyBrowserKeys(keySql, projectId, unused)).length
    }
    if (keys.length < keysAPart) return collected
  }
}

/**
 * Wraps the data keys that stand under an older master key with the first one. When it has returned,
 * the older ones can be taken out of the setting. Returns how many it rewrapped.
 */
export async function rewrapBrowserKeys({ sql, masterKeys }: BrowserKeys): Promise<number> {
  const olderIds = [...masterKeys.byId.keys()].filter((id) => id !== masterKeys.current.id)
  let rewrapped = 0
  while (olderIds.length > 0) {
    const rows = await sql<{
      projectId: number
      browserId: string
      masterKeyId: string
      wrapped: Buffer
    }>`
      select project_id as "projectId", browser_id as "browserId",
        master_key_id as "masterKeyId", wrapped
      from browser_keys
      where master_key_id = any(${olderIds})
      limit ${keysAPart}`
    for (const { projectId, browserId, ...old } of rows) {
      const wrappedKey = rewrap(masterKeys, old, { projectId, browserId })
      if (!wrappedKey) continue
      // An update and no upsert: a key that an erasure destroyed meanwhile does not come back.
      await sql`
        update browser_keys
        set master_key_id = ${wrappedKey.masterKeyId}, wrapped = ${wrappedKey.wrapped}
        where project_id = ${projectId} and browser_id = ${browserId}
          and master_key_id = ${old.masterKeyId}`
      rewrapped += 1
    }
    if (rows.length < keysAPart) break
  }
  return rewrapped
}
