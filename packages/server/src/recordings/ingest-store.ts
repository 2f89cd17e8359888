import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import { fold } from '../persons/fold.ts'
import type { Db, Sql } from '../sql.ts'

/** What decides about the requests of a public key. */
export interface IngestRules {
  /** null: any. */
  allowedOrigins: string[] | null
  /** Where set, identify carries the HMAC-SHA256 of the userId under it. */
  identifySecret: string | null
  masking: RecordingSettings['masking']
  sampleRate: number
}

export async function findIngestRules(
  sql: Sql,
  projectId: number,
  keyId: string,
): Promise<IngestRules | undefined> {
  const [rules] = await sql<IngestRules>`
    select k.allowed_origins as "allowedOrigins", p.identify_secret as "identifySecret",
      p.masking, p.sample_rate as "sampleRate"
    from keys k
    join projects p on p.id = k.project_id
    where k.project_id = ${projectId} and k.id = ${keyId}`
  return rules
}

/** Limits a public key to these origins; null lifts the limit. Answers whether there is such a key. */
export async function setAllowedOrigins(
  sql: Sql,
  projectId: number,
  keyId: string,
  origins: readonly string[] | null,
): Promise<boolean> {
  const changed = await sql`
    update keys set allowed_origins = ${origins}
    where project_id = ${projectId} and id = ${keyId} and kind = 'public'
    returning id`
  return changed.length > 0
}

export interface NewSession {
  projectId: number
  browserId: string
  sessionId: string
  url: string | null
  userAgent: string | null
  sdkVersion: string | null
}

export async function isBrowserWorking(
  sql: Sql,
  projectId: number,
  browserId: string,
): Promise<boolean> {
  const rows = await sql`
    select from browsers
    where project_id = ${projectId} and id = ${browserId} and not retired`
  return rows.length > 0
}

/** A browser that was never there before, with its first session. */
export async function insertBrowserWithSession(sql: Sql, session: NewSession): Promise<void> {
  await sql`
    with browser as (
      insert into browsers (project_id, id)
      values (${session.projectId}, ${session.browserId})
      returning id
    )
    insert into sessions (project_id, id, browser_id, url, user_agent, sdk_version)
    select ${session.projectId}, ${session.sessionId}, browser.id,
      ${session.url}, ${session.userAgent}, ${session.sdkVersion}
    from browser`
}

/** A session of a browser, which is locked against retirement. False where it is retired or unknown. */
export async function insertSession(sql: Sql, session: NewSession): Promise<boolean> {
  const inserted = await sql`
    with browser as (
      select id
      from browsers
      where project_id = ${session.projectId} and id = ${session.browserId} and not retired
      for share
    )
    insert into sessions (project_id, id, browser_id, url, user_agent, sdk_version)
    select ${session.projectId}, ${session.sessionId}, browser.id,
      ${session.url}, ${session.userAgent}, ${session.sdkVersion}
    from browser
    returning id`
  return inserted.length > 0
}

export type IdentifyOutcome = 'linked' | 'ignored' | 'linked_elsewhere' | 'retired'

/**
 * Ties a browser to the person with this externalId, for ever, and creates the person where there
 * is none. `ignored`: the person is being deleted, and nothing was written.
 */
export async function identify(
  db: Db,
  projectId: number,
  browserId: string,
  externalId: string,
): Promise<IdentifyOutcome> {
  const [browser] = await db.short<{ retired: boolean; linkedTo: string | null }>`
    select b.retired, p.external_id as "linkedTo"
    from browsers b
    left join person_browsers l on l.project_id = b.project_id and l.browser_id = b.id
    left join persons p on p.project_id = l.project_id and p.id = l.person_id
    where b.project_id = ${projectId} and b.id = ${browserId}`
  // Decided before the person is looked at: the answer tells nothing about who exists.
  if (!browser || browser.retired) return 'retired'
  if (browser.linkedTo !== null) {
    return browser.linkedTo === externalId ? 'linked' : 'linked_elsewhere'
  }
  return link(db, projectId, browserId, externalId)
}

/** Rolls a transaction back in which a person may have been created for nothing. */
class LinkRefused extends Error {
  readonly outcome: IdentifyOutcome

  constructor(outcome: IdentifyOutcome) {
    super(outcome)
    this.outcome = outcome
  }
}

async function link(
  db: Db,
  projectId: number,
  browserId: string,
  externalId: string,
): Promise<IdentifyOutcome> {
  try {
    return await db.begin(async (tx) => {
      // The order of locks is person, browser, as in the deletion: one of the two waits, and either
      // the link is there when the browsers are retired, or the flag is there when it is looked at.
      const personId = await lockPerson(tx, projectId, externalId)
      if (personId === undefined) return 'ignored'
      const [browser] = await tx<{ retired: boolean }>`
        select retired
        from browsers
        where project_id = ${projectId} and id = ${browserId}
        for update`
      if (!browser || browser.retired) throw new LinkRefused('retired')
      await tx`
        insert into person_browsers (project_id, browser_id, person_id)
        values (${projectId}, ${browserId}, ${personId})
        on conflict (project_id, browser_id) do nothing`
      const [linked] = await tx<{ personId: string }>`
        select person_id as "personId"
        from person_browsers
        where project_id = ${projectId} and browser_id = ${browserId}`
      if (linked?.personId !== personId) throw new LinkRefused('linked_elsewhere')
      return 'linked'
    })
  } catch (error) {
    if (error instanceof LinkRefused) return error.outcome
    throw error
  }
}

const lockAttempts = 5

/** The person, made where there is none, locked against its deletion; undefined while that runs. */
async function lockPerson(
  tx: Sql,
  projectId: number,
  externalId: string,
): Promise<string | undefined> {
  for (let attempt = 1; attempt <= lockAttempts; attempt++) {
    const [written] = await tx<{ outcome: string }>`
      select outcome
      from person_write(
        ${projectId}, ${externalId}, '{}', '{}', ${fold(externalId)}, null, null, true)`
    if (written?.outcome === 'deleting') return undefined
    const [person] = await tx<{ id: string; isBeingDeleted: boolean }>`
      select id, deletion_job_id is not null as "isBeingDeleted"
      from persons
      where project_id = ${projectId} and external_id = ${externalId}
      for share`
    // Between the two statements the person may have gone, for good: then a new one is made.
    if (person) return person.isBeingDeleted ? undefined : person.id
  }
  throw new Error('A person was gone each time it was to be locked.')
}

/** Which chunk it is: the number is counted in each tab of a session. */
export interface ChunkPlace {
  projectId: number
  browserId: string
  sessionId: string
  tab: string
  number: number
}

export type Intent =
  | { outcome: 'intended' | 'stored' | 'in_flight' | 'refused' }
  | { outcome: 'dead'; deadBlobKey: string }

/** Records the intent to upload a chunk (chunk_intend in the migrations says what it answers). */
export async function intendChunk(sql: Sql, place: ChunkPlace, blobKey: string): Promise<Intent> {
  const { projectId, browserId, sessionId, tab, number } = place
  const [intent] = await sql<Intent>`
    select outcome, dead_blob_key as "deadBlobKey"
    from chunk_intend(${projectId}, ${browserId}, ${sessionId}, ${tab}, ${number}, ${blobKey})`
  return intent as Intent
}

/** Confirms an upload, which succeeds only while its intent stands. Answers whether it did. */
export async function confirmChunk(
  sql: Sql,
  { projectId, sessionId, tab, number }: ChunkPlace,
  stored: { blobKey: string; bytes: number; pages: number },
): Promise<boolean> {
  // The session is locked before the chunk, in the order chunk_intend does it.
  const confirmed = await sql`
    with session as materialized (
      select id from sessions
      where project_id = ${projectId} and id = ${sessionId}
      for no key update
    ), confirmed as (
      update chunks c
      set state = 'stored', stored_at = app_now(), bytes = ${stored.bytes}
      from session
      where c.project_id = ${projectId} and c.session_id = session.id
        and c.tab = ${tab} and c.number = ${number} and c.blob_key = ${stored.blobKey}
        and c.state = 'intent' and c.intent_until > app_now()
      returning c.session_id, c.stored_at
    )
    update sessions s
    set chunks = s.chunks + 1, bytes = s.bytes + ${stored.bytes},
      pages = s.pages + ${stored.pages}, last_chunk_at = confirmed.stored_at
    from confirmed
    where s.project_id = ${projectId} and s.id = confirmed.session_id
    returning s.id`
  return confirmed.length > 0
}

/** Gives up an intent, so that it is never confirmed and can be collected. */
export async function killIntent(sql: Sql, projectId: number, blobKey: string): Promise<void> {
  await sql`
    update chunks set state = 'dead'
    where project_id = ${projectId} and blob_key = ${blobKey} and state = 'intent'`
}

export interface DeadChunk {
  projectId: number
  blobKey: string
  intentUntil: string
}

/**
 * Ends expired intents, the oldest first, and answers them with what was dead already, from those
 * after `after` on: what cannot be collected now does not stand in the way of the others.
 */
export async function killOldIntents(
  sql: Sql,
  after: DeadChunk | undefined,
  limit: number,
): Promise<DeadChunk[]> {
  return sql<DeadChunk>`
    with part as (
      select project_id, session_id, tab, number
      from chunks
      where state <> 'stored' and intent_until <= app_now()
        and (intent_until, blob_key) > (
          coalesce(${after?.intentUntil}::timestamptz, '-infinity'), ${after?.blobKey ?? ''})
      order by intent_until, blob_key
      limit ${limit}
      for update skip locked
    )
    update chunks c set state = 'dead'
    from part p
    where c.project_id = p.project_id and c.session_id = p.session_id
      and c.tab = p.tab and c.number = p.number and c.state <> 'stored'
    returning c.project_id as "projectId", c.blob_key as "blobKey",
      c.intent_until as "intentUntil"`
}

/** Forgets dead chunks, whose blobs are gone. */
export async function deleteDeadChunks(
  sql: Sql,
  projectId: number,
  blobKeys: readonly string[],
): Promise<void> {
  await sql`
    delete from chunks
    where project_id = ${projectId} and blob_key = any(${blobKeys}) and state = 'dead'`
}
