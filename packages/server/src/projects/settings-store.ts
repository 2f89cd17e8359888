import type {
  DashboardKey,
  DashboardProject,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import type { Static } from 'typebox'
import { fragment, type Sql } from '../sql.ts'
import { assertKeyIsThere, lockProject } from './identity-keys.ts'
import { setSuppression } from './suppressions.ts'

const hasSecret = fragment`exists (
    select from project_secrets s where s.project_id = projects.id and s.purpose = 'identity')`

const projectColumns = fragment`
  id::text as id, name, created_at as "createdAt", retention_days as "retentionDays",
  identified_days as "identifiedDays", masking,
  sample_rate::float8 as "sampleRate", suppresses_erased as "suppressesErased",
  allows_withdrawal as "allowsWithdrawal", records_assets as "recordsAssets",
  ${hasSecret} as "hasIdentifySecret", identity_proofs as "identityProofs",
  (${hasSecret} or identity_proofs <> 'any'
    or exists (select from identity_keys k where k.project_id = projects.id)) as "needsProof"`

export function listProjectSettings(sql: Sql): Promise<DashboardProject[]> {
  return sql<DashboardProject>`select ${projectColumns} from projects order by is_demo, projects.id`
}

export async function readProjectSettings(sql: Sql, id: number): Promise<DashboardProject> {
  const [project] = await sql<DashboardProject>`
    select ${projectColumns} from projects where id = ${id}`
  return project as DashboardProject
}

/** Changes only the given settings. */
export async function updateProjectSettings(
  sql: Sql,
  id: number,
  changes: Static<typeof updateProject.schema.body>,
): Promise<DashboardProject> {
  const { name, retentionDays, identifiedDays, masking, sampleRate } = changes
  const { suppressesErased, identityProofs, allowsWithdrawal, recordsAssets } = changes
  if (identityProofs === 'eddsa') {
    await lockProject(sql, id)
    await assertKeyIsThere(sql, id, '/body/identityProofs')
  }
  if (suppressesErased !== undefined) await setSuppression(sql, id, suppressesErased)
  const [project] = await sql<DashboardProject>`
    update projects
    set name = coalesce(${name ?? null}, name),
        retention_days = coalesce(${retentionDays ?? null}, retention_days),
        identified_days = coalesce(${identifiedDays ?? null}, identified_days),
        masking = coalesce(${masking ?? null}, masking),
        records_assets = coalesce(${recordsAssets ?? null}, records_assets),
        allows_withdrawal = coalesce(${allowsWithdrawal ?? null}, allows_withdrawal),
        identity_proofs = coalesce(${identityProofs ?? null}, identity_proofs),
        sample_rate = coalesce(${sampleRate ?? null}::real, sample_rate)
    where id = ${id}
    returning ${projectColumns}`
  return project as DashboardProject
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

/** Working keys first, then ended ones; each newest first. */
export function listKeySettings(sql: Sql, projectId: number): Promise<DashboardKey[]> {
  return sql<DashboardKey>`
    select ${keyColumns}
    from keys
    where project_id = ${projectId}
    order by (revoked_at is not null or coalesce(expires_at <= app_now(), false)),
      created_at desc, id desc`
}

/** Prevents other changes of a key until the transaction ends. */
export async function lockKey(tx: Sql, projectId: number, id: string): Promise<void> {
  await tx`select from keys where project_id = ${projectId} and id = ${id} for no key update`
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

/** Changes only the given settings, so that concurrent changes of the others are kept. */
export async function updateKeySettings(
  sql: Sql,
  projectId: number,
  id: string,
  { name, allowedOrigins }: { name?: string; allowedOrigins?: string[] | null },
): Promise<DashboardKey> {
  await sql`
    update keys
    set name = coalesce(${name ?? null}, name),
        allowed_origins = case
          when ${allowedOrigins !== undefined} then ${allowedOrigins ?? null}::text[]
          else allowed_origins
        end
    where project_id = ${projectId} and id = ${id}`
  return (await findKeySettings(sql, projectId, id)) as DashboardKey
}
