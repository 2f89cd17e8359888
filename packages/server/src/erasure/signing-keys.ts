import { createPrivateKey, generateKeyPairSync, type JsonWebKey, randomUUID } from 'node:crypto'
import type { PublicKeys } from '@lethe/contract/receipt.ts'
import type { MasterKeys } from '../blobs/master-keys.ts'
import { rewrap, unwrapDataKey, wrapDataKey } from '../blobs/sealing.ts'
import type { Db, Sql } from '../sql.ts'
import { deriveLedgerKeys } from './ledger.ts'
import { readInstallation } from './ledger-store.ts'
import type { Signer } from './receipts.ts'

/*
 * The keys that sign receipts are stored in the database, so that all processes of an installation
 * share them and a backup contains them. Their private halves are wrapped by the master key, so a
 * copy of the database alone cannot sign. (An Ed25519 key is derived from a seed of 32 bytes, as
 * long as a data key, so it is wrapped like one, for the project 0, which does not exist.)
 */

interface SigningKeyRow {
  id: string
  publicKey: Buffer
  masterKeyId: string
  wrapped: Buffer
}

const ownerOf = (id: string) => ({ projectId: 0, browserId: id })

/**
 * Returns the signer of this installation, and creates it if it is missing. If the master key of
 * the last one is gone, a new one signs from then on; receipts of the old one can still be checked.
 */
export function openSigner(db: Db, masterKeys: MasterKeys): Promise<Signer> {
  return db.begin(async (tx) => {
    // If several processes start at once, one of them creates the key.
    await tx`select from instance for update`
    const [row] = await tx<SigningKeyRow>`
      select id, public_key as "publicKey", master_key_id as "masterKeyId", wrapped
      from signing_keys
      where master_key_id = any(${[...masterKeys.byId.keys()]})
      order by created_at desc, id
      limit 1`
    const ledger = deriveLedgerKeys(masterKeys, await readInstallation(tx))
    if (!row) return { ...(await createSigner(tx, masterKeys)), ledger }
    await rewrapSigner(tx, masterKeys, row)
    const seed = unwrapDataKey(masterKeys, row, ownerOf(row.id))
    return { ...signerOf(row.id, row.publicKey, seed), ledger }
  })
}

async function createSigner(tx: Sql, masterKeys: MasterKeys) {
  const id = randomUUID()
  const { d, x } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })
  const seed = Buffer.from(d as string, 'base64url')
  const publicKey = Buffer.from(x as string, 'base64url')
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, seed, ownerOf(id))
  await tx`
    insert into signing_keys (id, public_key, master_key_id, wrapped)
    values (${id}, ${publicKey}, ${masterKeyId}, ${wrapped})`
  return signerOf(id, publicKey, seed)
}

/** Wraps the signing key with the current master key after a rotation. */
async function rewrapSigner(tx: Sql, masterKeys: MasterKeys, row: SigningKeyRow): Promise<void> {
  const wrappedKey = rewrap(masterKeys, row, ownerOf(row.id))
  if (!wrappedKey) return
  await tx`
    update signing_keys
    set master_key_id = ${wrappedKey.masterKeyId}, wrapped = ${wrappedKey.wrapped}
    where id = ${row.id}`
}

function signerOf(id: string, publicKey: Uint8Array, seed: Uint8Array) {
  const jwk: JsonWebKey = {
    kty: 'OKP',
    crv: 'Ed25519',
    x: Buffer.from(publicKey).toString('base64url'),
    d: Buffer.from(seed).toString('base64url'),
  }
  seed.fill(0)
  return { keyId: id, key: createPrivateKey({ key: jwk, format: 'jwk' }) }
}

/** All public keys that receipts were ever signed with. */
export async function publicKeys(sql: Sql): Promise<PublicKeys> {
  const keys = await sql<{ id: string; publicKey: Buffer }>`
    select id, public_key as "publicKey" from signing_keys order by created_at desc, id`
  return {
    keys: keys.map(({ id, publicKey }) => ({
      kty: 'OKP' as const,
      crv: 'Ed25519' as const,
      x: publicKey.toString('base64url'),
      kid: id,
      alg: 'EdDSA' as const,
      use: 'sig' as const,
    })),
  }
}
