import type { MasterKeys } from '../blobs/master-keys.ts'
import { createDataKey, rewrap, unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'

/**
 * The data keys of browsers, in the database of KEY_DATABASE_URL or in the main one. They are not cached
 * in memory: once the row of a key is destroyed, nothing can open the blobs.
 */
export interface BrowserKeys {
  sql: Sql
  /** A pipelined connection to the same database, for the read that each chunk needs. */
  short?: Sql
  masterKeys: MasterKeys
}

/** Keys destroyed, checked or rewrapped by one statement. */
const keysAPart = 1_000

/** Longer than the start of a session takes to insert the browser after its key. */
const uncheckedMinutes = 10

/**
 * Creates the data key of a browser that is about to be inserted. The key comes first: a browser
 * without a key could not record, but a key without a browser is deleted later.
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
 * Returns the data key of a browser, which the caller fills with zeros after use; undefined if it was
 * destroyed. Throws `SealBroken` if its master key is not configured.
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

/** Destroys data keys: after the commit no blob of these browsers can be opened, nor any copy. */
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

/** Returns those of these browsers that have a key. */
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
 * Deletes keys whose browsers were never inserted, because of a crash or an error in between. Checks
 * each key once, some minutes after its creation.
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
 * Rewraps data keys under older master keys with the first one; returns their number. After that, the
 * older ones can be removed from the setting.
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
      // No upsert, so that a key that an erasure destroyed meanwhile does not come back.
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
