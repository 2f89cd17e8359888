import { createHash, randomBytes } from 'node:crypto'

/* RFC 3161: an authority signs that a text existed at a time. Its response is stored unchanged. */

const responseBytesMaximum = 65_536

/** SHA-256, as an AlgorithmIdentifier in DER. */
const sha256 = Buffer.from('300d06096086480165030402010500', 'hex')

/** Returns the TimeStampResp, in DER. Throws if the response is a refusal or invalid. */
export async function timestampOf(url: string, text: string, signal: AbortSignal): Promise<Buffer> {
  const hash = createHash('sha256').update(text).digest()
  const nonce = randomBytes(8)
  // A positive number in the fewest bytes, as DER requires.
  nonce[0] = 0x40 | ((nonce[0] as number) & 0x3f)
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'error',
    headers: { 'content-type': 'application/timestamp-query' },
    body: new Uint8Array(requestOf(hash, nonce)),
    signal,
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isOfThis = bytes.includes(hash) && bytes.includes(nonce)
  if (!response.ok || bytes.length > responseBytesMaximum || !isGranted(bytes) || !isOfThis) {
    throw new AnchorRefused('timestamp_refused')
  }
  return bytes
}

/** An anchor was not accepted. The code says where; the response is not quoted. */
export class AnchorRefused extends Error {
  override readonly name = 'AnchorRefused'
  readonly code: 'timestamp_refused' | 'url_refused'

  constructor(code: AnchorRefused['code']) {
    super(code)
    this.code = code
  }
}

function requestOf(hash: Buffer, nonce: Buffer): Buffer {
  const imprint = sequence(sha256, Buffer.from([0x04, hash.length]), hash)
  const version = Buffer.from([0x02, 1, 1])
  const wantsCertificate = Buffer.from([0x01, 1, 0xff])
  return sequence(version, imprint, Buffer.from([0x02, nonce.length]), nonce, wantsCertificate)
}

/** For content of less than 128 bytes. */
function sequence(...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([0x30, content.length]), content])
}

/** The status is the first number of the first sequence: 0 is granted, 1 granted with changes. */
function isGranted(bytes: Buffer): boolean {
  const status = contentOf(contentOf(bytes))
  return status?.[0] === 0x02 && status[1] === 1 && (status[2] as number) <= 1
}

/** Returns the content of the sequence that the bytes begin with. */
function contentOf(bytes: Buffer | undefined): Buffer | undefined {
  if (bytes?.[0] !== 0x30) return undefined
  const length = bytes[1] ?? 0
  return bytes.subarray(length < 0x80 ? 2 : 2 + (length & 0x7f))
}
