import { randomBytes } from 'node:crypto'
import type { DashboardKey, DashboardProject } from '@lethe/contract/dashboard-projects.ts'
import { fragment, type Sql } from '../sql.ts'

const projectColumns = fragment`
  id::text as id, name, created_at as "createdAt", retention_days as "retentionDays", masking,
  sample_rate::float8 as "sampleRate", identify_secret is not null as "hasIdentifySecret"`

export function listProjectSettings(sql: Sql): Promise<DashboardProject[]> {
  return sql<DashboardProject>`select ${projectColumns} from projects order by projects.id`
}

export async function readProjectSettings(sql: Sql, id: number): Promise<DashboardProject> {
  const [project] = await sql<DashboardProject>`
    select ${projectColumns} from projects where id = ${id}`
  return project as DashboardProject
}

export interface ProjectChanges {
  name?: string
  retentionDays?: number
  masking?: string
  sampleRate?: number
}

/** What is not given stays as it is. */
export async function updateProjectSettings(
  sql: Sql,
  id: number,
  { name, retentionDays, masking, sampleRate }: ProjectChanges,
): Promise<DashboardProject> {
  const [project] = await sql<DashboardProject>`
    update projects
    set name = coalesce(${name ?? null}, name),
        retention_days = coalesce(${retentionDays ?? null}, retention_days),
        masking = coalesce(${masking ?? null}, masking),
        sample_rate = coalesce(${sampleRate ?? null}::real, sample_rate)
    where id = ${id}
    returning ${projectColumns}`
  return project as DashboardProject
}

/** Makes the secret that hashes of userIds are checked by, in place of the one before. */
export async function makeIdentifySecret(sql: Sql, id: number): Promise<string> {
  const secret = randomBytes(32).toString('hex')
  await sql`update projects set identify_secret = ${secret} where id = ${id}`
  return secret
}

/** From then on identify is taken without a hash. */
export async function removeIdentifySecret(sql: Sql, id: number): Promise<void> {
  await sql`update projects set identify_secret = null where id = ${id}`
}

const keyColumns = fragment`
  id, kind, name, last4, public_text as "publicText", allowed_origins as "allowedOrigins",
  created_at as "createdAt", last_used_at as "lastUsedAt", expires_at as "expiresAt",
  revoked_at as "revokedAt",
  case
    when revoked_at is not null or expires_at <= app_now() then 'ended'
    when expires_at is not null then 'ending'
    else 'working'
  end as state`

/** Newest first, those that ended last. */
export function listKeySettings(sql: Sql, projectId: number): Promise<DashboardKey[]> {
  return sql<DashboardKey>`
    select ${keyColumns}
    from keys
    where project_id = ${projectId}
    order by (revoked_at is not null or coalesce(expires_at <= app_now(), false)),
      created_at desc, id desc`
}

export async function findKeySettings(
  sql: Sql,
  projectId: number,
  id: string,
): Promise<DashboardKey | undefined> {
  const [key] = await sql<DashboardKey>`
    select ${keyColumns} from keys where project_id = ${projectId} and id = ${id}`
  return key
}

export async function updateKeySettings(
  sql: Sql,
  projectId: number,
  id: string,
  { name, allowedOrigins }: { name: string; allowedOrigins: string[] | null },
): Promise<DashboardKey> {
  const [key] = await sql<DashboardKey>`
    update keys set name = ${name}, allowed_origins = ${allowedOrigins}::text[]
    where project_id = ${projectId} and id = ${id}
    returning ${keyColumns}`
  return key as DashboardKey
}
