import { randomUUID } from 'node:crypto'
import type { Webhook, WebhookDelivery, WebhookEvent } from '@lethe/contract/dashboard-webhooks.ts'
import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { notifyDeliveries } from '../erasure/jobs.ts'
import type { Position } from '../http/page.ts'
import { fragment, type Sql } from '../sql.ts'

const webhookColumns = fragment`
  w.id, w.url, w.events, w.is_enabled as "isEnabled", w.created_at as "createdAt",
  last.created_at as "lastDeliveryAt", last.state as "lastDeliveryState"`

const lastDelivery = fragment`
  left join lateral (
    select d.created_at, d.state
    from webhook_deliveries d
    where d.project_id = w.project_id and d.webhook_id = w.id
    order by d.created_at desc, d.id desc
    limit 1
  ) last on true`

/** Oldest first. */
export function listWebhooks(sql: Sql, projectId: number): Promise<Webhook[]> {
  return sql<Webhook>`
    select ${webhookColumns}
    from webhooks w ${lastDelivery}
    where w.project_id = ${projectId}
    order by w.created_at, w.id`
}

export async function findWebhook(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<Webhook | undefined> {
  const [webhook] = await sql<Webhook>`
    select ${webhookColumns}
    from webhooks w ${lastDelivery}
    where w.project_id = ${projectId} and w.id = ${id}`
  return webhook
}

export async function insertWebhook(
  sql: Sql,
  projectId: number,
  { url, events }: { url: string; events: readonly WebhookEvent[] },
): Promise<string> {
  const [row] = await sql<{ id: string }>`
    insert into webhooks (project_id, url, events)
    values (${projectId}, ${url}, ${events}::text[])
    returning id`
  return (row as { id: string }).id
}

/** Changes only the given settings, so that concurrent changes of the others are kept. */
export async function updateWebhook(
  sql: Sql,
  projectId: number,
  id: string,
  { url, events, isEnabled }: Partial<Pick<Webhook, 'url' | 'events' | 'isEnabled'>>,
): Promise<void> {
  await sql`
    update webhooks
    set url = coalesce(${url ?? null}, url),
        events = coalesce(${events ?? null}::text[], events),
        is_enabled = coalesce(${isEnabled ?? null}::boolean, is_enabled)
    where project_id = ${projectId} and id = ${id}`
}

export async function deleteWebhook(sql: Sql, projectId: number, id: string): Promise<void> {
  await sql`delete from webhooks where project_id = ${projectId} and id = ${id}`
}

/** Advances to the next secret and returns its version; the old one signs too for `overlapHours`. */
export async function advanceSecret(
  sql: Sql,
  projectId: number,
  id: string,
  overlapHours: number,
): Promise<number> {
  const [row] = await sql<{ version: number }>`
    update webhooks
    set secret_version = secret_version + 1,
        old_secret_until = app_now() + ${overlapHours} * interval '1 hour'
    where project_id = ${projectId} and id = ${id}
    returning secret_version as version`
  return (row as { version: number }).version
}

const deliveryColumns = fragment`
  id, event, job_id as "jobId", created_at as "createdAt", state,
  earlier_attempts + attempts as attempts,
  next_attempt_at as "nextAttemptAt", ended_at as "endedAt", last_status as "lastStatus",
  last_error_code as "lastErrorCode"`

/** Newest first. */
export function listDeliveries(
  sql: Sql,
  projectId: number,
  webhookId: string,
  after: Position<'createdAt' | 'id'> | null,
  limit: number,
): Promise<WebhookDelivery[]> {
  return sql<WebhookDelivery>`
    select ${deliveryColumns}
    from webhook_deliveries
    where project_id = ${projectId} and webhook_id = ${webhookId}
      and (created_at, id) < (
        coalesce(${after?.createdAt ?? null}::timestamptz, 'infinity'),
        coalesce(${after?.id ?? null}::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    order by created_at desc, id desc
    limit ${limit}`
}

export async function insertTestDelivery(
  sql: Sql,
  projectId: number,
  webhookId: string,
): Promise<WebhookDelivery> {
  const [delivery] = await sql<WebhookDelivery>`
    insert into webhook_deliveries (project_id, webhook_id, event)
    values (${projectId}, ${webhookId}, 'webhook.test')
    returning ${deliveryColumns}`
  notifyDeliveries(sql)
  return delivery as WebhookDelivery
}

/** Sends a delivery again under the same id, even if it is being sent right now. */
export async function resendDelivery(
  sql: Sql,
  projectId: number,
  webhookId: string,
  id: string,
): Promise<WebhookDelivery | undefined> {
  const [delivery] = await sql<WebhookDelivery>`
    update webhook_deliveries
    set state = 'pending', earlier_attempts = earlier_attempts + attempts, attempts = 0,
        next_attempt_at = app_now(), ended_at = null,
        lease_token = null, lease_until = null
    where project_id = ${projectId} and webhook_id = ${webhookId} and id = ${id}
    returning ${deliveryColumns}`
  if (delivery) notifyDeliveries(sql)
  return delivery
}

/** A delivery leased by this process. */
export interface ClaimedDelivery {
  projectId: number
  id: string
  event: WebhookDelivery['event']
  createdAt: string
  attempts: number
  leaseToken: string
  webhookId: string
  url: string
  isEnabled: boolean
  secretVersion: number
  isOldSecretValid: boolean
  /** null for a test. */
  job: DeletionJob | null
}

/** How many deliveries to one webhook may run at a time, and the webhooks of those that run. */
interface Share {
  ofEach: number
  running: readonly string[]
}

interface DueWebhook {
  projectId: number
  id: string
}

/**
 * Claims up to `limit` deliveries of all projects, the longest due first, within the share of each
 * webhook. Counts the attempt; if the process is lost, the lease ends and another attempt follows.
 */
export async function claimDeliveries(
  sql: Sql,
  limit: number,
  leaseSeconds: number,
  { ofEach, running }: Share = { ofEach: limit, running: [] },
): Promise<ClaimedDelivery[]> {
  const runningOf = (id: string) => running.filter((one) => one === id).length
  const full = [...new Set(running)].filter((id) => runningOf(id) >= ofEach)
  const webhooks = await sql<DueWebhook>`
    select project_id as "projectId", webhook_id as id
    from (
      select project_id, webhook_id, next_attempt_at
      from webhook_deliveries
      where state = 'pending' and next_attempt_at <= (select app_now())
        and (lease_until is null or lease_until <= (select app_now()))
        and webhook_id <> all(${full}::uuid[])
      order by next_attempt_at
      limit ${limit}
    ) due
    group by project_id, webhook_id
    order by min(next_attempt_at)`
  const claimed: ClaimedDelivery[] = []
  for (const webhook of webhooks) {
    const room = Math.min(limit - claimed.length, ofEach - runningOf(webhook.id))
    if (room > 0) claimed.push(...(await claimDeliveriesOf(sql, webhook, room, leaseSeconds)))
  }
  return claimed
}

function claimDeliveriesOf(
  sql: Sql,
  { projectId, id }: DueWebhook,
  limit: number,
  leaseSeconds: number,
): Promise<ClaimedDelivery[]> {
  return sql<ClaimedDelivery>`
    with due as (
      select id
      from webhook_deliveries
      where project_id = ${projectId} and webhook_id = ${id} and state = 'pending'
        and next_attempt_at <= (select app_now())
        and (lease_until is null or lease_until <= (select app_now()))
      order by next_attempt_at
      limit ${limit}
      for update skip locked
    ), claimed as (
      update webhook_deliveries d
      set attempts = attempts + 1, lease_token = md5(${randomUUID()} || d.id)::uuid,
          lease_until = app_now() + ${leaseSeconds} * interval '1 second'
      from due
      where d.project_id = ${projectId} and d.id = due.id
      returning d.*
    )
    select c.project_id as "projectId", c.id, c.event, c.created_at as "createdAt", c.attempts,
      c.lease_token as "leaseToken", c.webhook_id as "webhookId", w.url,
      w.is_enabled as "isEnabled", w.secret_version as "secretVersion",
      coalesce(w.old_secret_until > app_now(), false) as "isOldSecretValid",
      case when j.id is not null then json_build_object(
        'id', j.id, 'externalId', j.external_id, 'keepRecordings', j.keep_recordings,
        'status', j.status, 'createdAt', instant_text(j.created_at),
        'startedAt', instant_text(j.started_at), 'completedAt', instant_text(j.completed_at))
      end as job
    from claimed c
    join webhooks w on w.project_id = ${projectId} and w.id = c.webhook_id
    left join deletion_jobs j on j.project_id = ${projectId} and j.id = c.job_id`
}

/** The result of an attempt; `retrySeconds` is null if no attempt follows. */
export interface DeliveryResult {
  isDelivered: boolean
  status: number | null
  errorCode: string | null
  retrySeconds: number | null
}

/** Stores the result of an attempt, unless its lease was lost. */
export async function endAttempt(
  sql: Sql,
  { projectId, id, leaseToken }: ClaimedDelivery,
  { isDelivered, status, errorCode, retrySeconds }: DeliveryResult,
): Promise<void> {
  const state = isDelivered ? 'delivered' : retrySeconds === null ? 'failed' : 'pending'
  await sql`
    update webhook_deliveries
    set state = ${state}, lease_token = null, lease_until = null,
        last_status = ${status}::integer, last_error_code = ${errorCode}::text,
        next_attempt_at = app_now() + ${retrySeconds}::float8 * interval '1 second',
        ended_at = app_now() + ${state === 'pending' ? null : 0}::float8 * interval '1 second'
    where project_id = ${projectId} and id = ${id} and lease_token = ${leaseToken}`
}

/** Disables a webhook whose receiver responded with 410, until a member enables it. */
export async function disableWebhook(sql: Sql, projectId: number, id: string): Promise<void> {
  await sql`update webhooks set is_enabled = false where project_id = ${projectId} and id = ${id}`
}

/** Deletes up to `limit` deliveries that ended more than `days` ago; returns the number. */
export async function deleteOldDeliveries(sql: Sql, days: number, limit: number): Promise<number> {
  const old = await sql<{ projectId: number; id: string }>`
    select project_id as "projectId", id
    from webhook_deliveries
    where state <> 'pending' and ended_at < app_now() - ${days} * interval '1 day'
    limit ${limit}`
  for (const [projectId, its] of Map.groupBy(old, (one) => one.projectId)) {
    const ids = its.map(({ id }) => id)
    await sql`
      delete from webhook_deliveries
      where project_id = ${projectId} and id = any(${ids}::uuid[]) and state <> 'pending'`
  }
  return old.length
}
