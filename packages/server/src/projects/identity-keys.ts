import { createPublicKey, type KeyObject } from 'node:crypto'
import type { IdentityKey } from '@lethe/contract/dashboard-projects.ts'
import { invalid } from '../api-error.ts'
import { isUuid } from '../http/parameters.ts'
import type { Sql } from '../sql.ts'

/** A project has at most two keys: the one in use and its successor. */
const identityKeysMaximum = 2

export function listIdentityKeys(sql: Sql, projectId: number): Promise<IdentityKey[]> {
  return sql<IdentityKey>`
    select id, translate(encode(public_key, 'base64'), '+/=', '-_') as "publicKey",
      created_at as "createdAt"
    from identity_keys
    where project_id = ${projectId}
    order by created_at desc, id desc`
}

/**
 * Adds a key (SPKI in PEM, or a JWK). Throws `ApiError` for any other text and for a third key. Returns
 * whether the key is new.
 */
export async function addIdentityKey(tx: Sql, projectId: number, text: string): Promise<boolean> {
  const x = publicKeyIn(text)
  if (!x) throw invalid('/body/publicKey', 'must be an Ed25519 public key, in PEM or as a JWK')
  await lockProject(tx, projectId)
  const keys = await listIdentityKeys(tx, projectId)
  if (keys.some(({ publicKey }) => publicKey === x)) return false
  if (keys.length >= identityKeysMaximum) {
    throw invalid('/body/publicKey', `there are ${identityKeysMaximum} already; remove one first`)
  }
  await tx`
    insert into identity_keys (project_id, public_key)
    values (${projectId}, ${Buffer.from(x, 'base64url')})`
  return true
}

/**
 * Removes a key; returns whether it existed. Refuses to remove the last one if the project accepts only
 * EdDSA tokens, because then nobody could be identified.
 */
export async function removeIdentityKey(tx: Sql, projectId: number, id: string): Promise<boolean> {
  const proofs = await lockProject(tx, projectId)
  if (!isUuid(id)) return false
  const removed = await tx`
    delete from identity_keys where project_id = ${projectId} and id = ${id} returning id`
  if (proofs === 'eddsa') await assertKeyIsThere(tx, projectId, '/params/keyId')
  return removed.length > 0
}

/** Refuses to accept only EdDSA tokens without a key. The caller has locked the project. */
export async function assertKeyIsThere(tx: Sql, projectId: number, path: string): Promise<void> {
  const [key] = await tx`select from identity_keys where project_id = ${projectId} limit 1`
  if (!key) throw invalid(path, 'EdDSA tokens need a public key to be checked with')
}

export async function lockProject(tx: Sql, projectId: number): Promise<string | undefined> {
  const [project] = await tx<{ proofs: string }>`
    select identity_proofs as proofs from projects where id = ${projectId} for no key update`
  return project?.proofs
}

/** As 43 characters of base64url. */
function publicKeyIn(text: string): string | undefined {
  try {
    const isJwk = text.trimStart().startsWith('{')
    const key = isJwk ? JSON.parse(text) : text
    // Refuses private keys: Node would use the public half.
    if (isJwk ? 'd' in key : !/-----BEGIN PUBLIC KEY-----/.test(text)) return undefined
    const { kty, crv, x } = (
      isJwk ? createPublicKey({ key, format: 'jwk' }) : createPublicKey(text)
    ).export({ format: 'jwk' })
    return kty === 'OKP' && crv === 'Ed25519' ? x : undefined
  } catch {
    return undefined
  }
}

export function keyObjectOf({ publicKey }: IdentityKey): KeyObject {
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: publicKey },
    format: 'jwk',
  })
}
