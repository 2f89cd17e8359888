import type { PublicKeys, ReceiptStatement } from '@lethe/contract/receipt.ts'

export type Verdict =
  | { kind: 'valid'; statement: ReceiptStatement; isOfPerson: boolean | undefined }
  | { kind: 'invalid'; reason: string }
  /** This browser cannot check signatures of this kind, or the page is not on https. */
  | { kind: 'unable' }

/**
 * Checks a receipt, or the API's response that has one, in the browser: its Ed25519 signature against
 * the published keys, and where an externalId is given, whether the receipt is about that person.
 * Nothing but the public keys is asked of the server, and `keys` can be had from anywhere else.
 */
export async function verifyReceipt(
  receipt: string,
  keys: PublicKeys,
  externalId?: string,
): Promise<Verdict> {
  const parts = receiptIn(receipt.trim()).split('.')
  const [header, payload, signature] = parts
  if (parts.length !== 3 || !header || !payload || !signature) {
    return { kind: 'invalid', reason: 'Not a receipt: it isn’t in receipt format.' }
  }
  // There on https and localhost only.
  if (!globalThis.crypto?.subtle) return { kind: 'unable' }
  try {
    const { kid, alg, typ } = JSON.parse(textOf(header)) as Record<string, unknown>
    // The same keys sign other statements too.
    if (alg !== 'EdDSA' || typ !== 'lethe-receipt+jws') {
      return { kind: 'invalid', reason: 'Not a receipt: it states something else.' }
    }
    const key = keys.keys.find((one) => one.kid === kid)
    if (!key) {
      return {
        kind: 'invalid',
        reason: 'It was signed with a key that this installation does not publish.',
      }
    }
    const imported = await importKey(key)
    if (!imported) return { kind: 'unable' }
    const signed = new TextEncoder().encode(`${header}.${payload}`)
    const isSigned = await crypto.subtle.verify('Ed25519', imported, bytesOf(signature), signed)
    // Some bits of its last letter stand for nothing: one receipt has one text, and one hash.
    if (!isSigned || textOfBytes(bytesOf(signature)) !== signature) {
      return { kind: 'invalid', reason: 'The signature doesn’t match: the receipt was changed.' }
    }
    const statement = JSON.parse(textOf(payload)) as ReceiptStatement
    const isOfPerson = externalId === undefined ? undefined : await isAbout(statement, externalId)
    return { kind: 'valid', statement, isOfPerson }
  } catch {
    return { kind: 'invalid', reason: 'Not a receipt: it can’t be read.' }
  }
}

/** The receipt in a response of the API, which is what many keep, or the text itself. */
function receiptIn(text: string): string {
  try {
    const { receipt } = JSON.parse(text)
    return typeof receipt === 'string' ? receipt : text
  } catch {
    return text
  }
}

async function importKey({ kty, crv, x }: PublicKeys['keys'][number]): Promise<CryptoKey | null> {
  try {
    return await crypto.subtle.importKey('jwk', { kty, crv, x }, 'Ed25519', false, ['verify'])
  } catch {
    return null
  }
}

async function isAbout(statement: ReceiptStatement, externalId: string): Promise<boolean> {
  const { externalIdSalt, externalIdHash } = statement
  const salt = Uint8Array.from(externalIdSalt.match(/../g) ?? [], (hex) => Number.parseInt(hex, 16))
  const id = new TextEncoder().encode(externalId)
  const digest = await crypto.subtle.digest('SHA-256', new Uint8Array([...salt, ...id]))
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0'))
  return hex.join('') === externalIdHash
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

function textOfBytes(bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function textOf(base64url: string): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(base64url))
}

/** Gives the member a receipt as a file. */
export function downloadReceipt(jobId: string, receipt: string): void {
  const url = URL.createObjectURL(new Blob([receipt], { type: 'application/jose' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `lethe-receipt-${jobId}.jws`
  link.click()
  URL.revokeObjectURL(url)
}
