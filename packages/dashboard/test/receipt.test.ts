import { generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { verifyReceipt } from '../src/deletions/receipt.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const { x = '' } = publicKey.export({ format: 'jwk' })
const key = { kty: 'OKP', crv: 'Ed25519', x, kid: 'k1', alg: 'EdDSA', use: 'sig' } as const
const keys = { keys: [key] }

function signed(typ: string): string {
  const parts = [
    { alg: 'EdDSA', typ, kid: key.kid },
    { version: 1, attempts: 1 },
  ]
  const text = parts
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`
}

test('a receipt is genuine, and no other statement of the same key is a receipt', async () => {
  const receipt = signed('lethe-receipt+jws')
  expect(await verifyReceipt(receipt, keys)).toMatchObject({ kind: 'valid' })
  const response = JSON.stringify({ receipt, purge: signed('lethe-purge+jws') })
  expect(await verifyReceipt(response, keys)).toMatchObject({ kind: 'valid' })
  for (const text of ['{}', 'null', '{"receipt":1}', '{']) {
    expect(await verifyReceipt(text, keys)).toMatchObject({ kind: 'invalid' })
  }
  for (const typ of ['lethe-purge+jws', 'lethe-anchor+jws', 'JWT']) {
    const verdict = await verifyReceipt(signed(typ), keys)
    expect(verdict).toMatchObject({ kind: 'invalid', reason: expect.stringContaining('something') })
  }
})

test('a receipt is not genuine with another last letter, nor by a key that is not published', async () => {
  const receipt = signed('lethe-receipt+jws')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = letters[letters.indexOf(receipt.at(-1) as string) + 1]
  expect(await verifyReceipt(receipt.slice(0, -1) + last, keys)).toMatchObject({ kind: 'invalid' })
  const others = { keys: [{ ...key, kid: 'k2' }] }
  expect(await verifyReceipt(receipt, others)).toMatchObject({
    kind: 'invalid',
    reason: expect.stringContaining('does not publish'),
  })
})
