import type { RecordingSettings } from '@lethe/contract/ingest.ts'
import type { IdentityRules } from '../projects/identity.ts'
import { fragment, type Sql } from '../sql.ts'

/** The rules for requests with a public key. */
export interface IngestRules {
  /** null: any origin. */
  allowedOrigins: string[] | null
  identity: IdentityRules
  allowsWithdrawal: boolean
  masking: RecordingSettings['masking']
  sampleRate: number
  recordsAssets: boolean
}

export async function findIngestRules(
  sql: Sql,
  projectId: number,
  keyId: string,
): Promise<Omit<IngestRules, 'identity'> | undefined> {
  const [rules] = await sql<IngestRules>`
    select k.allowed_origins as "allowedOrigins", p.masking, p.sample_rate as "sampleRate",
      p.records_assets as "recordsAssets", p.allows_withdrawal as "allowsWithdrawal"
    from keys k
    join projects p on p.id = k.project_id
    where k.project_id = ${projectId} and k.id = ${keyId}`
  return rules
}

/** Limits a public key to these origins; null lifts the limit. Returns whether there is such a key. */
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
  /** ISO 3166-1 alpha-2. */
  country?: string | null
  /** Whether the session is listed before its first chunk. */
  isBegun?: boolean
}

/** A browser `b` that is not retired and whose person is not being deleted. */
const isWorking = fragment`
  and not b.retired -- fault: browser-not-retired
  and not exists (
    select from person_browsers l
    join persons p on p.project_id = l.project_id and p.id = l.person_id
    where l.project_id = b.project_id and l.browser_id = b.id
      and p.deletion_job_id is not null -- fault: browser-not-deleting
  )
`

export async function isBrowserWorking(
  sql: Sql,
  projectId: number,
  browserId: string,
): Promise<boolean> {
  const rows = await sql`
    -- statement: start-at-first
    select from browsers b
    where b.project_id = ${projectId} and b.id = ${browserId}
      ${isWorking}`
  return rows.length > 0
}

/** Inserts a new browser with its first session. */
export async function insertBrowserWithSession(sql: Sql, session: NewSession): Promise<void> {
  await sql`
    with browser as (
      insert into browsers (project_id, id)
      values (${session.projectId}, ${session.browserId})
      returning id
    )
    insert into sessions (project_id, id, browser_id, url, user_agent, sdk_version, country, is_begun)
    select ${session.projectId}, ${session.sessionId}, browser.id,
      ${session.url}, ${session.userAgent}, ${session.sdkVersion}, ${session.country ?? null},
      ${session.isBegun ?? true}
    from browser`
}

/**
 * Inserts a session, and locks its browser against retirement. Returns false if the browser is retired
 * or unknown, its person is being deleted, or it has started `aDayMaximum` sessions today (0: no
 * limit).
 */
export async function insertSession(
  sql: Sql,
  session: NewSession,
  aDayMaximum = 0,
): Promise<boolean> {
  const inserted = await sql`
    with browser as (
      -- statement: start
      select b.id
      from browsers b
      where b.project_id = ${session.projectId} and b.id = ${session.browserId}
        ${isWorking}
      for share -- fault: start-locks-browser
    )
    insert into sessions (project_id, id, browser_id, url, user_agent, sdk_version, country, is_begun)
    select ${session.projectId}, ${session.sessionId}, browser.id,
      ${session.url}, ${session.userAgent}, ${session.sdkVersion}, ${session.country ?? null},
      ${session.isBegun ?? true}
    from browser
    where ${aDayMaximum} = 0 or ${aDayMaximum} > (
      select count(*)
      from (
        select from sessions s
        where s.project_id = ${session.projectId} and s.browser_id = ${session.browserId}
          and s.started_at > app_now() - interval '1 day'
        limit ${aDayMaximum}
      ) of_today
    )
    returning id`
  return inserted.length > 0
}

/** Identifies a chunk. Each tab of a session numbers its chunks. */
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

/** Records the intent to upload a chunk (chunk_intend in the migrations says what it returns). */
export async function intendChunk(sql: Sql, place: ChunkPlace, blobKey: string): Promise<Intent> {
  const { projectId, browserId, sessionId, tab, number } = place
  const [intent] = await sql<Intent>`
    select outcome, dead_blob_key as "deadBlobKey"
    from chunk_intend(${projectId}, ${browserId}, ${sessionId}, ${tab}, ${number}, ${blobKey})`
  return intent as Intent
}

/** What the SDK reports about a chunk: times of events (milliseconds) and counts. */
export interface ToldOfChunk {
  pages?: number
  /** From the session's start to the first event and the last. */
  from?: number
  to?: number
  errors?: number
  failedRequests?: number
  rageClicks?: number
  deadClicks?: number
}

/** Skips rows that another transaction has locked. */
const skipLocked = fragment`skip locked`
const waitForLocks = fragment``

export interface ChunkToIntend extends ChunkPlace {
  blobKey: string
}

/**
 * Records the intents of new chunks of one project in one commit. Skips those that are refused, locked
 * or not new, for which `chunk_intend` says more. Returns the blob keys of the recorded ones.
 */
export async function intendNewChunks(
  sql: Sql,
  chunks: readonly ChunkToIntend[],
): Promise<Set<string>> {
  const { projectId } = chunks[0] as ChunkToIntend
  const rows = await sql<{ blobKey: string }>`
    -- statement: intend
    insert into chunks (project_id, session_id, tab, number, blob_key, intent_until)
    select ${projectId}, one.session_id, one.tab, one.number, one.blob_key,
      app_now() + interval '60 seconds'
    from unnest(
      ${chunks.map((one) => one.browserId)}::uuid[], ${chunks.map((one) => one.sessionId)}::uuid[],
      ${chunks.map((one) => one.tab)}::text[], ${chunks.map((one) => one.number)}::integer[],
      ${chunks.map((one) => one.blobKey)}::text[]
    ) as one(browser_id, session_id, tab, number, blob_key)
    cross join lateral (
      select from browsers b
      where b.project_id = ${projectId} and b.id = one.browser_id
        ${isWorking}
      for share skip locked -- fault: intend-locks-browser
    ) as working
    cross join lateral (
      select from sessions s
      where s.project_id = ${projectId} and s.id = one.session_id
        and s.browser_id = one.browser_id
        and not s.closed -- fault: intend-session-open
        and s.started_at > app_now() - interval '8 days'
        and s.packed is null -- fault: intend-unpacked
      for share skip locked -- fault: intend-locks-session
    ) as recording
    on conflict (project_id, session_id, tab, number) do nothing
    returning blob_key as "blobKey"`
  return new Set(rows.map(({ blobKey }) => blobKey))
}

export interface ChunkToConfirm extends ChunkPlace, ToldOfChunk {
  blobKey: string
  /** The size of the sealed blob. */
  bytes: number
}

/**
 * Confirms uploads of one project in one commit, each only if its intent is still valid. Returns the
 * blob keys of the confirmed ones. Skips locked sessions unless `waits` is true.
 */
export async function confirmChunks(
  sql: Sql,
  chunks: readonly ChunkToConfirm[],
  { waits }: { waits: boolean },
): Promise<Set<string>> {
  const { projectId } = chunks[0] as ChunkToConfirm
  // Sessions are locked before chunks, as in chunk_intend.
  const rows = await sql<{ blobKey: string }>`
    with told as (
      select *
      from unnest(
        ${chunks.map((one) => one.sessionId)}::uuid[], ${chunks.map((one) => one.tab)}::text[],
        ${chunks.map((one) => one.number)}::integer[], ${chunks.map((one) => one.blobKey)}::text[],
        ${chunks.map((one) => one.bytes)}::integer[],
        ${chunks.map((one) => one.pages ?? 0)}::integer[],
        ${chunks.map((one) => one.errors ?? 0)}::integer[],
        ${chunks.map((one) => one.failedRequests ?? 0)}::integer[],
        ${chunks.map((one) => one.rageClicks ?? 0)}::integer[],
        ${chunks.map((one) => one.deadClicks ?? 0)}::integer[],
        ${chunks.map((one) => one.from ?? null)}::integer[],
        ${chunks.map((one) => one.to ?? null)}::integer[]
      ) as one(session_id, tab, number, blob_key, bytes, pages, errors, failed_requests,
        rage_clicks, dead_clicks, first_event, last_event)
    ), session as materialized (
      select id from sessions
      where project_id = ${projectId}
        and id = any(${[...new Set(chunks.map((one) => one.sessionId))]}::uuid[])
      order by id
      for no key update ${waits ? waitForLocks : skipLocked} -- fault: confirm-locks-session
    ), confirmed as (
      update chunks c
      set state = 'stored', stored_at = app_now(), bytes = told.bytes
      from told
      join session on session.id = told.session_id
      where c.project_id = ${projectId} and c.session_id = told.session_id
        and c.tab = told.tab and c.number = told.number
        and c.blob_key = told.blob_key -- fault: confirm-blob
        and c.state = 'intent' -- fault: confirm-intent
        and c.intent_until > app_now() -- fault: confirm-time
      returning c.stored_at, told.*
    ), of_session as (
      select session_id, count(*) as chunks, sum(bytes) as bytes, sum(pages) as pages,
        max(stored_at) as stored_at, sum(errors) as errors, sum(failed_requests) as failed_requests,
        sum(rage_clicks) as rage_clicks, sum(dead_clicks) as dead_clicks,
        min(first_event) as first_event, max(last_event) as last_event
      from confirmed
      group by session_id
    ), counted as (
      update sessions s
      set chunks = s.chunks + one.chunks, bytes = s.bytes + one.bytes,
        pages = s.pages + one.pages, last_chunk_at = one.stored_at, is_begun = true,
        is_unpacked = true,
        errors = s.errors + one.errors, failed_requests = s.failed_requests + one.failed_requests,
        rage_clicks = s.rage_clicks + one.rage_clicks,
        dead_clicks = s.dead_clicks + one.dead_clicks,
        first_event_at = least(
          s.first_event_at, later(s.started_at, one.first_event)),
        last_event_at = greatest(
          s.last_event_at, later(s.started_at, one.last_event))
      from of_session one
      where s.project_id = ${projectId} and s.id = one.session_id
    )
    select blob_key as "blobKey" from confirmed`
  return new Set(rows.map(({ blobKey }) => blobKey))
}

/** Ends an intent, so that it is never confirmed and can be deleted. */
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
 * Ends expired intents after `after`, oldest first, and returns them together with chunks that were
 * already dead.
 */
export async function killOldIntents(
  sql: Sql,
  after: DeadChunk | undefined,
  limit: number,
): Promise<{ dead: DeadChunk[]; last: DeadChunk | undefined }> {
  const old = await sql<DeadChunk>`
    select project_id as "projectId", blob_key as "blobKey", intent_until as "intentUntil"
    from chunks
    where state <> 'stored'
      and intent_until <= app_now() -- fault: collect-expired
      and (intent_until, blob_key) > (
        coalesce(${after?.intentUntil}::timestamptz, '-infinity'), ${after?.blobKey ?? ''})
    order by intent_until, blob_key
    limit ${limit}`
  const dead: DeadChunk[] = []
  for (const [id, its] of Map.groupBy(old, ({ projectId }) => projectId)) {
    const keys = its.map(({ blobKey }) => blobKey)
    dead.push(
      ...(await sql<DeadChunk>`
        with part as (
          select session_id, tab, number
          from chunks
          where project_id = ${id} and blob_key = any(${keys})
            and state <> 'stored' -- fault: collect-unconfirmed
          for update skip locked -- fault: collect-locks-chunk
        )
        update chunks c set state = 'dead'
        from part p
        where c.project_id = ${id} and c.session_id = p.session_id
          and c.tab = p.tab and c.number = p.number
        returning c.project_id as "projectId", c.blob_key as "blobKey",
          c.intent_until as "intentUntil"`),
    )
  }
  return { dead, last: old.length === limit ? old.at(-1) : undefined }
}

/** Deletes the rows of dead chunks, whose blobs are gone. */
export async function deleteDeadChunks(
  sql: Sql,
  projectId: number,
  blobKeys: readonly string[],
): Promise<void> {
  await sql`
    delete from chunks
    where project_id = ${projectId} and blob_key = any(${blobKeys}) and state = 'dead'`
}
