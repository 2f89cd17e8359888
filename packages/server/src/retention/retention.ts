import { BlobFault, type Blobs, browserPrefix, sessionPrefix } from '../blobs/blobs.ts'
import { inLanes } from '../lanes.ts'
import { partsOf } from '../parts.ts'
import { destroyBrowserKeys } from '../recordings/browser-keys.ts'
import {
  chunkRowsAPart,
  deleteBrowsers,
  deleteRowsOfSessions,
  killExpiredIntents,
  type OwnedSession,
} from '../recordings/removal.ts'
import type { Recordings } from '../recordings/upload.ts'
import type { Db, Sql } from '../sql.ts'
import { expireIdentified, noteIdle } from './identified.ts'

/** Sessions closed and deleted per batch. */
const sessionsAPart = 100

/** Browsers read by one statement. */
const browsersAPart = 1_000

const deletionsAtOnce = 4

export interface Expired {
  sessions: number
  chunks: number
  browsers: number
  persons: number
}

/**
 * Deletes what is past its project's retention: sessions by their last activity (blobs, then rows, as
 * an erasure does), then browsers without sessions with their links to persons, then, if the project
 * says so, people whom only identify() has created. Can be interrupted at any point, and several
 * processes may run it at once. A fault of the blob store is thrown after everything else was tried.
 */
export async function expireRecordings(recordings: Recordings): Promise<Expired> {
  const { sql } = recordings.db
  const expired = { sessions: 0, chunks: 0, browsers: 0, persons: 0 }
  const faults: BlobFault[] = []
  const projects = await sql<{ id: number; retentionDays: number; identifiedDays: number }>`
    select id, retention_days as "retentionDays", identified_days as "identifiedDays"
    from projects
    order by id`
  for (const { id, retentionDays, identifiedDays } of projects) {
    while ((await closeOldSessions(sql, id, retentionDays)) === sessionsAPart);
    await deleteOwnedSessions(recordings, id, expired, faults)
    expired.browsers += await deleteUnusedBrowsers(recordings, id, faults)
    expired.persons += await expireIdentified(recordings.db, id, identifiedDays)
  }
  if (faults[0]) throw faults[0]
  return expired
}

/**
 * Closes old sessions, so that they accept no more chunks. Sessions that another transaction has
 * locked, as for an intent, are left for the next round.
 */
async function closeOldSessions(sql: Sql, projectId: number, days: number): Promise<number> {
  const closed = await sql`
    with old as (
      select id
      from sessions
      where project_id = ${projectId} and not closed
        and started_at < app_now() - ${days} * interval '1 day'
        and coalesce(last_chunk_at, started_at) < app_now() - ${days} * interval '1 day'
      order by started_at
      limit ${sessionsAPart}
      for update skip locked -- fault: close-locks-session
    )
    update sessions s set closed = true -- fault: close-session
    from old
    where s.project_id = ${projectId} and s.id = old.id
    returning s.id`
  return closed.length
}

async function deleteOwnedSessions(
  recordings: Recordings,
  projectId: number,
  expired: Expired,
  faults: BlobFault[],
): Promise<void> {
  const { db, blobs } = recordings
  const prefixOf = ({ id, browserId }: OwnedSession) => sessionPrefix(projectId, browserId, id)
  const parts = partsOf<OwnedSession>(sessionsAPart, (after) =>
    drainedSessions(db.sql, projectId, after?.id ?? null),
  )
  for await (const sessions of parts) {
    const deleted = await deleteBlobs(blobs, sessions, prefixOf, faults)
    await deleteRows(db, projectId, deleted, expired)
  }
}

/** Returns the items whose blobs are deleted. A fault of one does not stop the others. */
async function deleteBlobs<T>(
  blobs: Blobs,
  items: readonly T[],
  prefixOf: (item: T) => string,
  faults: BlobFault[],
): Promise<T[]> {
  const deleted: T[] = []
  await inLanes(items, deletionsAtOnce, async (item) => {
    try {
      await blobs.deletePrefix(prefixOf(item))
      deleted.push(item)
    } catch (error) {
      if (!(error instanceof BlobFault)) throw error
      faults.push(error)
    }
  })
  return deleted
}

async function deleteRows(
  db: Db,
  projectId: number,
  sessions: readonly OwnedSession[],
  expired: Expired,
) {
  const browserIds = [...new Set(sessions.map(({ browserId }) => browserId))]
  for (let isDone = sessions.length === 0; !isDone; ) {
    const part = await db.begin(async (tx) => {
      // Browsers are locked before sessions. Marked in the same transaction, so that none is missed.
      await markToCheck(tx, projectId, browserIds)
      return deleteRowsOfSessions(tx, projectId, sessions)
    })
    isDone = part.isDone
    for (const { sessions, chunks } of part.removed.values()) {
      expired.sessions += sessions
      expired.chunks += chunks
    }
  }
}

async function markToCheck(tx: Sql, projectId: number, browserIds: string[]): Promise<void> {
  await tx`
    with locked as (
      select id from browsers
      where project_id = ${projectId} and id = any(${browserIds}::uuid[])
      order by id
      for update -- fault: expired-locks-browsers
    )
    update browsers b set to_check = true
    from locked
    where b.project_id = ${projectId} and b.id = locked.id and not b.to_check`
}

/** Closed sessions with no upload that can still be confirmed; the others are left for later. */
async function drainedSessions(
  sql: Sql,
  projectId: number,
  afterId: string | null,
): Promise<OwnedSession[]> {
  while ((await killExpiredIntents(sql, projectId, 'closed')) === chunkRowsAPart);
  return sql<OwnedSession>`
    select id, browser_id as "browserId"
    from sessions s
    where project_id = ${projectId}
      and closed -- fault: expired-is-closed
      and id > coalesce(${afterId}::uuid, '00000000-0000-0000-0000-000000000000')
      and not exists (select from chunks c -- fault: expired-is-drained
        where c.project_id = s.project_id -- fault: expired-is-drained
          and c.session_id = s.id and c.state = 'intent') -- fault: expired-is-drained
    order by id
    limit ${sessionsAPart}`
}

/**
 * Deletes the marked browsers that have no session left. They are retired first, so that no new
 * session can start; then key, blobs and row are deleted.
 */
async function deleteUnusedBrowsers(
  { db, blobs, browserKeys }: Recordings,
  projectId: number,
  faults: BlobFault[],
): Promise<number> {
  let deleted = 0
  const parts = partsOf<{ id: string }>(
    browsersAPart,
    (after) => db.sql`
      select id from browsers
      where project_id = ${projectId} and to_check
        and id > coalesce(${after?.id ?? null}::uuid, '00000000-0000-0000-0000-000000000000')
      order by id
      limit ${browsersAPart}`,
  )
  for await (const marked of parts) {
    const ids = marked.map(({ id }) => id)
    const unused = await db.begin((tx) => retireUnused(tx, projectId, ids))
    if (unused.length > 0) {
      await destroyBrowserKeys(browserKeys.sql, projectId, unused)
      const prefixOf = (id: string) => browserPrefix(projectId, id)
      const gone = await deleteBlobs(blobs, unused, prefixOf, faults)
      deleted += await db.begin((tx) => deleteFromPersons(tx, projectId, gone))
    }
  }
  return deleted
}

async function deleteFromPersons(tx: Sql, projectId: number, browserIds: string[]) {
  const persons = await tx<{ id: string }>`
    select distinct person_id as id from person_browsers
    where project_id = ${projectId} and browser_id = any(${browserIds}::uuid[])`
  const deleted = await deleteBrowsers(tx, projectId, browserIds)
  // Persons are locked after browsers, as in an erasure.
  const personIds = persons.map(({ id }) => id).sort()
  if (personIds.length > 0) await noteIdle(tx, projectId, personIds)
  return deleted.length
}

/**
 * Checks under the lock, so that no start, identify or other retention runs meanwhile. An erasure may
 * delete the same browser: both are idempotent.
 */
async function retireUnused(tx: Sql, projectId: number, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return []
  await tx`
    select from browsers
    where project_id = ${projectId} and id = any(${ids}::uuid[])
    order by id
    for update -- fault: unused-locks-browser
    `
  await tx`
    update browsers b set to_check = false
    where project_id = ${projectId} and id = any(${ids}::uuid[])
      and exists (select from sessions s
        where s.project_id = b.project_id and s.browser_id = b.id)`
  const unused = await tx<{ id: string }>`
    update browsers b set retired = true -- fault: unused-retires
    where project_id = ${projectId} and id = any(${ids}::uuid[])
      and not exists (select from sessions s -- fault: unused-no-session
        where s.project_id = b.project_id and s.browser_id = b.id) -- fault: unused-no-session
    returning id`
  return unused.map((browser) => browser.id)
}
