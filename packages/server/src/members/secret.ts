import { hkdfSync, randomBytes } from 'node:crypto'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'

/** What is derived from the secret of an installation; each is of no use for the others. */
export interface InstanceSecrets {
  /** Signs sign-in cookies and encrypts second factors. */
  signIn: string
  /** Webhooks' secrets are derived from it. */
  webhooks: Buffer
}

const secretBytes = 32

/** No browser has this id: the place that the secret is sealed for is nobody's data key. */
const owner = { projectId: 0, browserId: 'instance' }

/**
 * Reads the secret of this installation, which is made at the first start and is the same for every
 * process. Where an older master key wraps it, it is rewrapped.
 *
 * Throws `SealBroken` where its master key is not configured.
 */
export async function readInstanceSecrets(
  sql: Sql,
  masterKeys: MasterKeys,
): Promise<InstanceSecrets> {
  const made = randomBytes(secretBytes)
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, made, owner)
  await sql`
    insert into auth.secrets (master_key_id, wrapped) values (${masterKeyId}, ${wrapped})
    on conflict do nothing`
  const [row] = await sql<{ masterKeyId: string; wrapped: Buffer }>`
    select master_key_id as "masterKeyId", wrapped from auth.secrets`
  const kept = row as NonNullable<typeof row>
  const secret = unwrapDataKey(masterKeys, kept, owner)
  if (kept.masterKeyId !== masterKeys.current.id) {
    const rewrapped = wrapDataKey(masterKeys, secret, owner)
    await sql`
      update auth.secrets set master_key_id = ${rewrapped.masterKeyId}, wrapped = ${rewrapped.wrapped}
      where master_key_id = ${kept.masterKeyId}`
  }
  return {
    signIn: derive(secret, 'lethe sign-in').toString('base64url'),
    webhooks: derive(secret, 'lethe webhooks'),
  }
}

function derive(secret: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), purpose, secretBytes))
}
