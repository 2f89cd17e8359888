import { createHmac } from 'node:crypto'
import type { MasterKeys } from '../blobs/master-keys.ts'
import type { Sql } from '../sql.ts'
import { createProjectSecret, readProjectSecrets } from './secrets-store.ts'

/**
 * The erased persons whom identify must not create again, for projects that turn this on. Stores keyed
 * hashes; the key belongs to the project and is wrapped by the master key.
 */
export interface Suppressions {
  /** Call it in the transaction that completes the erasure. */
  add(tx: Sql, projectId: number, externalIds: readonly string[]): Promise<void>
  has(sql: Sql, projectId: number, externalId: string): Promise<boolean>
  /** Returns whether there was anything to lift. */
  lift(sql: Sql, projectId: number, externalId: string): Promise<boolean>
}

export function suppressionsWith(masterKeys: MasterKeys): Suppressions {
  async function keyOf(sql: Sql, projectId: number): Promise<Buffer | undefined> {
    const [key] = await readProjectSecrets(sql, masterKeys, projectId, 'suppression')
    return key
  }
  return {
    async add(tx, projectId, externalIds) {
      const [project] = await tx`select from projects where id = ${projectId} and suppresses_erased`
      if (!project) return
      let key = await keyOf(tx, projectId)
      if (!key) {
        await createProjectSecret(tx, masterKeys, projectId, 'suppression')
        // A concurrent transaction may have stored another one.
        key = (await keyOf(tx, projectId)) as Buffer
      }
      const hashes = externalIds.map((one) => hashOf(key, one))
      await tx`
        insert into suppressions (project_id, hash)
        select ${projectId}, hash from unnest(${hashes}::bytea[]) as one (hash)
        on conflict do nothing`
    },
    async has(sql, projectId, externalId) {
      const key = await keyOf(sql, projectId)
      if (!key) return false
      const rows = await sql`
        select from suppressions
        where project_id = ${projectId} and hash = ${hashOf(key, externalId)}`
      return rows.length > 0
    },
    async lift(sql, projectId, externalId) {
      const key = await keyOf(sql, projectId)
      if (!key) return false
      const lifted = await sql`
        delete from suppressions
        where project_id = ${projectId} and hash = ${hashOf(key, externalId)}
        returning project_id`
      return lifted.length > 0
    },
  }
}

function hashOf(key: Buffer, externalId: string): Buffer {
  return createHmac('sha256', key).update(externalId).digest()
}

/** Turns suppression of a project on or off. Turning it off deletes all its hashes. */
export async function setSuppression(tx: Sql, projectId: number, isOn: boolean): Promise<void> {
  await tx`update projects set suppresses_erased = ${isOn} where id = ${projectId}`
  if (isOn) return
  await tx`delete from suppressions where project_id = ${projectId}`
  await tx`delete from project_secrets where project_id = ${projectId} and purpose = 'suppression'`
}
