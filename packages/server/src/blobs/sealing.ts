import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { release } from '../release.ts'
import type { MasterKeys } from './master-keys.ts'

/*
 * Envelope encryption. Each browser has a random data key that seals its chunks. The data key is
 * stored wrapped, that is, sealed by a master key of the installation. Both use AES-256-GCM (NIST
 * SP 800-38D) of node:crypto in one format:
 *
 *   version, 1 byte (1) | nonce, 12 bytes | ciphertext, as long as the plain bytes | tag, 16 bytes
 *
 * The additional data ties the sealed bytes to their place: they cannot be opened anywhere else.
 *
 * Nonces are random. Section 8.3 of the NIST paper allows 2^32 per key, for a chance of a
 * repetition of at most 2^-32. A data key stays far below: a browser that uploads a chunk a second
 * reaches it after 136 years. A master key reaches it after 2^32 wraps, one per browser and
 * rotation: rotate it before it has wrapped four billion data keys.
 */

const version = 1
const nonceBytes = 12
const tagBytes = 16
const dataKeyBytes = 32

/** The bytes that sealing adds. */
export const sealOverheadBytes = 1 + nonceBytes + tagBytes

/** The place of a chunk. Numbers are counted for each tab of a session. */
export interface ChunkContext {
  projectId: number
  sessionId: string
  tab: string
  number: number
}

/** The tab of packs, which contain the chunks of a finished session. No page can use it. */
export const packTab = ''

export interface DataKeyOwner {
  projectId: number
  browserId: string
}

/** A data key as stored: the master key that wrapped it, and the 61 bytes. */
export interface WrappedDataKey {
  masterKeyId: string
  wrapped: Uint8Array
}

/**
 * Sealed bytes cannot be opened: truncated (`length`), of an unknown format (`version`), or
 * changed, moved or sealed with another key (`authentication`). Or the master key that wrapped a
 * data key is not configured (`master_key_unknown`).
 */
export class SealBroken extends Error {
  override readonly name = 'SealBroken'
  readonly reason: 'length' | 'version' | 'authentication' | 'master_key_unknown'

  constructor(reason: SealBroken['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** 32 random bytes, created once per browser. Never logged, and only stored wrapped. */
export function createDataKey(): Uint8Array {
  return randomBytes(dataKeyBytes)
}

/** Wraps with the first of the master keys. */
export function wrapDataKey(
  masterKeys: MasterKeys,
  dataKey: Uint8Array,
  owner: DataKeyOwner,
): WrappedDataKey {
  const { id, key } = masterKeys.current
  return { masterKeyId: id, wrapped: encrypt(key, dataKeyPlace(id, owner), dataKey) }
}

/** Throws `SealBroken`. */
export function unwrapDataKey(
  masterKeys: MasterKeys,
  { masterKeyId, wrapped }: WrappedDataKey,
  owner: DataKeyOwner,
): Uint8Array {
  const key = masterKeys.byId.get(masterKeyId)
  if (!key) {
    throw new SealBroken('master_key_unknown', `There is no master key with the id ${masterKeyId}.`)
  }
  if (wrapped.length !== dataKeyBytes + sealOverheadBytes) {
    throw new SealBroken('length', 'A wrapped data key has an invalid length.')
  }
  return decrypt(key, dataKeyPlace(masterKeyId, owner), wrapped)
}

/**
 * Returns the data key wrapped by the first master key, or undefined if it already is. For a
 * rotation: add a new key in front, rewrap all data keys, then remove the old key.
 */
export function rewrap(
  masterKeys: MasterKeys,
  wrappedKey: WrappedDataKey,
  owner: DataKeyOwner,
): WrappedDataKey | undefined {
  if (wrappedKey.masterKeyId === masterKeys.current.id) return undefined
  const dataKey = unwrapDataKey(masterKeys, wrappedKey, owner)
  try {
    return wrapDataKey(masterKeys, dataKey, owner)
  } finally {
    dataKey.fill(0)
  }
}

/** Seals a chunk for its place. The result is `sealOverheadBytes` longer. */
export function seal(dataKey: Uint8Array, context: ChunkContext, bytes: Uint8Array): Uint8Array {
  return encrypt(keyObject(dataKey), chunkPlace(context), bytes)
}

/** Opens a sealed chunk. Throws `SealBroken`. */
export function open(dataKey: Uint8Array, context: ChunkContext, sealed: Uint8Array): Uint8Array {
  return decrypt(keyObject(dataKey), chunkPlace(context), sealed)
}

/** Seals a part of a backup with this `header`; `number` counts the parts from 0. */
export function sealPart(dataKey: Uint8Array, header: string, number: number, bytes: Uint8Array) {
  return encrypt(keyObject(dataKey), partPlace(header, number), bytes)
}

/** Opens a part of a backup. Throws `SealBroken`. */
export function openPart(dataKey: Uint8Array, header: string, number: number, sealed: Uint8Array) {
  return decrypt(keyObject(dataKey), partPlace(header, number), sealed)
}

// JSON of an array of strings and integers, so that different places have different texts.
function chunkPlace({ projectId, sessionId, tab, number }: ChunkContext): Buffer {
  return Buffer.from(JSON.stringify(['lethe chunk', version, projectId, sessionId, tab, number]))
}

function partPlace(header: string, number: number): Buffer {
  return Buffer.from(JSON.stringify(['lethe backup', version, header, number]))
}

function dataKeyPlace(masterKeyId: string, { projectId, browserId }: DataKeyOwner): Buffer {
  return Buffer.from(JSON.stringify(['lethe data key', version, masterKeyId, projectId, browserId]))
}

// Creating a cipher from raw key bytes takes some fifty microseconds, from this a few.
const keyObject = (dataKey: Uint8Array) => createSecretKey(dataKey)

function encrypt(key: KeyObject, place: Buffer, bytes: Uint8Array): Uint8Array {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(place)
  const ciphertext = cipher.update(bytes)
  const parts = [Buffer.of(version), nonce, ciphertext, cipher.final(), cipher.getAuthTag()]
  const sealed = Buffer.concat(parts)
  release(ciphertext)
  return sealed
}

function decrypt(key: KeyObject, place: Buffer, sealed: Uint8Array): Uint8Array {
  if (sealed.length < sealOverheadBytes) {
    throw new SealBroken('length', 'Sealed bytes were truncated.')
  }
  if (sealed[0] !== version) {
    throw new SealBroken('version', 'Sealed bytes have an unknown format.')
  }
  const nonce = sealed.subarray(1, 1 + nonceBytes)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, {
    authTagLength: tagBytes,
  })
  decipher.setAAD(place)
  decipher.setAuthTag(sealed.subarray(-tagBytes))
  const bytes = decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes))
  try {
    // In GCM this only checks the tag. Until then the bytes must not be used.
    decipher.final()
  } catch {
    bytes.fill(0)
    throw new SealBroken(
      'authentication',
      'Sealed bytes were changed or moved, or the key is wrong.',
    )
  }
  return bytes
}
