import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type KeyKind = 'secret' | 'public'

const prefixOf: Record<KeyKind, string> = { secret: 'sk_', public: 'pk_' }

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * Creates the text of a key: a prefix, 32 random bytes in base62 (43 characters), and a checksum of
 * both in base62 (6 characters), so that scanners recognize leaked keys and typos need no query.
 */
export function newKeyText(kind: KeyKind): string {
  const secret = `${prefixOf[kind]}${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)}`
  return secret + checksum(secret)
}

/** The kind of a key's text; undefined if its form or checksum is wrong. */
export function kindOfKeyText(text: string): KeyKind | undefined {
  if (!/^[sp]k_[0-9A-Za-z]{49}$/.test(text)) return undefined
  if (checksum(text.slice(0, -6)) !== text.slice(-6)) return undefined
  return text.startsWith('sk_') ? 'secret' : 'public'
}

/** SHA-256 of the whole text in hex: all that is stored. 256 random bits need no slow hash. */
export function hashOfKeyText(text: string): string {
  return hash('sha256', text, 'hex')
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), 6)
}

function base62(number: bigint, length: number): string {
  let text = ''
  for (let rest = number; rest > 0n; rest /= 62n) text = alphabet[Number(rest % 62n)] + text
  return text.padStart(length, '0')
}
