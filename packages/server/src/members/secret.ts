import { hkdfSync, randomBytes } from 'node:crypto'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { rewrap, unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Sql } from '../sql.ts'

/** Secrets derived from the installation's secret. None of them reveals another. */
export interface InstanceSecrets {
  /** Signs sign-in cookies and encrypts second factors. */
  signIn: string
  /** Webhooks' secrets are derived from it. */
  webhooks: Buffer
}

const secretBytes = 32

/** No browser has this id, so no data key is sealed for the same place. */
const owner = { projectId: 0, browserId: 'instance' }

/**
 * Reads the secret of this installation, which the first start creates and all processes share. If an
 * older master key wraps it, it is rewrapped. Throws `SealBroken` if its master key is not configured.
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
  const rewrapped = rewrap(masterKeys, kept, owner)
  if (rewrapped) {
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
