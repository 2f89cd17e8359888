import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { IdentityProofs } from '@lethe/contract/dashboard-projects.ts'
import { jwtVerify } from 'jose'
import type { MasterKeys } from '../blobs/master-keys.ts'
import type { Db, Sql } from '../sql.ts'
import { keyObjectOf, listIdentityKeys } from './identity-keys.ts'
import { createProjectSecret, deleteProjectSecrets, readProjectSecrets } from './secrets-store.ts'

/** The valid secrets of a project: the newest and the previous one. */
const identitySecretsMaximum = 2

/** The proofs of a user id that a project accepts from identify. */
export interface IdentityRules {
  proofs: IdentityProofs
  secrets: readonly string[]
  publicKeys: readonly KeyObject[]
}

export async function readIdentityRules(
  db: Db,
  masterKeys: MasterKeys,
  projectId: number,
): Promise<IdentityRules> {
  const [project] = await db.short<{ proofs: IdentityProofs }>`
    select identity_proofs as proofs from projects where id = ${projectId}`
  return {
    proofs: project?.proofs ?? 'any',
    secrets: await readIdentitySecrets(db, masterKeys, projectId),
    publicKeys: (await listIdentityKeys(db.short, projectId)).map(keyObjectOf),
  }
}

/** The newest first. */
export async function readIdentitySecrets(
  db: Db,
  masterKeys: MasterKeys,
  projectId: number,
): Promise<string[]> {
  const secrets = await readProjectSecrets(db.short, masterKeys, projectId, 'identity')
  return secrets.map((secret) => secret.toString('hex'))
}

/** Creates a secret. The previous one stays valid; older ones are deleted. */
export async function createIdentitySecret(
  tx: Sql,
  masterKeys: MasterKeys,
  projectId: number,
): Promise<string> {
  const secret = await createProjectSecret(tx, masterKeys, projectId, 'identity')
  await deleteProjectSecrets(tx, projectId, 'identity', identitySecretsMaximum)
  return secret.toString('hex')
}

/**
 * Whether the customer's backend signed this user id, if the project requires it. A proof is a JWT
 * with `sub` and `exp` (HS256 with a secret, or EdDSA), or an HMAC-SHA256 of the id in hex, which does
 * not expire.
 */
export async function isProven(
  { proofs, secrets, publicKeys }: IdentityRules,
  userId: string,
  proof: string | undefined,
): Promise<boolean> {
  if (proofs === 'any' && secrets.length + publicKeys.length === 0) return true
  if (proof === undefined) return false
  if (!proof.includes('.')) {
    return proofs === 'any' && secrets.some((secret) => isHashOf(secret, userId, proof))
  }
  for (const key of publicKeys) if (await isTokenOf(key, userId, proof)) return true
  if (proofs === 'eddsa') return false
  for (const secret of secrets) {
    if (await isTokenOf(Buffer.from(secret), userId, proof)) return true
  }
  return false
}

/** The key decides which algorithms are valid, never the token. */
async function isTokenOf(key: Buffer | KeyObject, userId: string, token: string): Promise<boolean> {
  try {
    await jwtVerify(token, key, {
      algorithms: Buffer.isBuffer(key) ? ['HS256'] : ['EdDSA', 'Ed25519'],
      subject: userId,
      requiredClaims: ['sub', 'exp'],
    })
    return true
  } catch {
    return false
  }
}

function isHashOf(secret: string, userId: string, hash: string): boolean {
  const expected = createHmac('sha256', secret).update(userId).digest()
  const given = Buffer.from(/^[0-9a-f]{64}$/i.test(hash) ? hash : '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
