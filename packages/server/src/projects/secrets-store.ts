import { randomBytes } from 'node:crypto'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { rewrap, unwrapDataKey, type WrappedDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'

export type SecretPurpose = 'identity' | 'suppression'

const secretBytes = 32

/** No browser has this id, so no data key is sealed for the same place. */
const ownerOf = (projectId: number, purpose: SecretPurpose) => ({ projectId, browserId: purpose })

interface SecretRow extends WrappedDataKey {
  id: string
}

/** Newest first. Rewraps secrets that an older master key wraps. Throws `SealBroken`. */
export async function readProjectSecrets(
  sql: Sql,
  masterKeys: MasterKeys,
  projectId: number,
  purpose: SecretPurpose,
): Promise<Buffer[]> {
  const rows = await sql<SecretRow>`
    select id, master_key_id as "masterKeyId", wrapped
    from project_secrets
    where project_id = ${projectId} and purpose = ${purpose}
    order by created_at desc, id desc`
  const owner = ownerOf(projectId, purpose)
  const secrets: Buffer[] = []
  for (const row of rows) {
    secrets.push(Buffer.from(unwrapDataKey(masterKeys, row, owner)))
    const again = rewrap(masterKeys, row, owner)
    if (!again) continue
    await sql`
      update project_secrets set master_key_id = ${again.masterKeyId}, wrapped = ${again.wrapped}
      where project_id = ${projectId} and id = ${row.id} and master_key_id = ${row.masterKeyId}`
  }
  return secrets
}

/** If several suppression secrets are created at once, only the first one is stored. */
export async function createProjectSecret(
  sql: Sql,
  masterKeys: MasterKeys,
  projectId: number,
  purpose: SecretPurpose,
): Promise<Buffer> {
  const secret = randomBytes(secretBytes)
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, secret, ownerOf(projectId, purpose))
  await sql`
    insert into project_secrets (project_id, purpose, master_key_id, wrapped)
    values (${projectId}, ${purpose}, ${masterKeyId}, ${wrapped})
    on conflict do nothing`
  return secret
}

/** Deletes all but the newest `kept`. Returns whether there were any. */
export async function deleteProjectSecrets(
  sql: Sql,
  projectId: number,
  purpose: SecretPurpose,
  kept = 0,
): Promise<boolean> {
  const deleted = await sql`
    delete from project_secrets
    where project_id = ${projectId} and id in (
      select id from project_secrets
      where project_id = ${projectId} and purpose = ${purpose}
      order by created_at desc, id desc
      offset ${kept})
    returning id`
  return deleted.length > 0
}
