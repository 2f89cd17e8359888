import {
  brotliDecompressSync,
  inflateRawSync,
  inflateSync,
  constants as zlib,
  zstdDecompressSync,
} from 'node:zlib'

/*
 * Looks for texts in bytes of any kind, in the forms in which something could have kept them. A
 * text is of lower-case letters and digits, so that no form has to guess what was folded.
 */

export interface Hit {
  text: string
  /** As in `plain`, `gzip > base64`: what was opened, from the outside to the inside. */
  form: string
}

/** Every form in which any of the texts occurs in the bytes, each once. */
export function scan(bytes: Buffer, texts: readonly string[]): Hit[] {
  const hits = new Map<string, Hit>()
  const needles = texts.map((text) => ({ text, forms: formsOf(text) }))
  const look = (layer: Buffer, path: string, depth: number) => {
    // Both cases at one go: bytes are taken as Latin-1, so those of no letter stay as they are.
    const folded = Buffer.from(layer.toString('latin1').toLowerCase(), 'latin1')
    for (const { text, forms } of needles) {
      for (const { name, bytes: needle, isFolded } of forms) {
        if (!(isFolded ? folded : layer).includes(needle)) continue
        const form = `${path}${name}`
        hits.set(`${text} ${form}`, { text, form })
      }
    }
    if (depth === 0) return
    for (const { name, bytes: inner } of layersOf(layer)) {
      look(inner, `${path}${name} > `, depth - 1)
    }
  }
  look(bytes, '', depthMaximum)
  return [...hits.values()]
}

/** Compressed in base64 in something compressed, and one more. */
const depthMaximum = 4

interface Form {
  name: string
  bytes: Buffer
  /** Whether the case of what is searched does not matter. */
  isFolded: boolean
}

function formsOf(text: string): Form[] {
  const folded = (name: string, form: string | Buffer) => ({
    name,
    bytes: Buffer.from(form as string),
    isFolded: true,
  })
  const codes = [...Buffer.from(text)].map((code) => code.toString(16).padStart(2, '0'))
  return [
    folded('plain', text),
    // Without the last zero: so big-endian text is found as well, one byte later.
    folded('utf-16', Buffer.from(text, 'utf16le').subarray(0, -1)),
    folded('hex', codes.join('')),
    folded('json', codes.map((code) => `\\u00${code}`).join('')),
    folded('percent', codes.map((code) => `%${code}`).join('')),
    folded('entities', codes.map((code) => `&#x${code};`).join('')),
    ...[0, 1, 2].flatMap((shift) => base64Forms(text, shift)),
  ]
}

/** The middle of the text's base64 where so many bytes stand before it: what no neighbour changes. */
function base64Forms(text: string, shift: number): Form[] {
  const encoded = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]).toString('base64')
  const from = shift === 0 ? 0 : shift + 1
  const to = Math.floor(((shift + text.length) * 8) / 6)
  const middle = encoded.slice(from, to)
  const url = middle.replaceAll('+', '-').replaceAll('/', '_')
  return [...new Set([middle, url])].map((one) => ({
    name: `base64+${shift}`,
    bytes: Buffer.from(one),
    isFolded: false,
  }))
}

interface Layer {
  name: string
  bytes: Buffer
}

/** What can be opened in the bytes. */
function* layersOf(bytes: Buffer): Generator<Layer> {
  yield* inflatedAnywhere('gzip', bytes, Buffer.from([0x1f, 0x8b, 0x08]), inflateMember)
  yield* inflatedAnywhere('zstd', bytes, Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), (at) =>
    zstdDecompressSync(at, { finishFlush: zlib.ZSTD_e_flush, ...bound }),
  )
  for (const second of [0x01, 0x5e, 0x9c, 0xda]) {
    yield* inflatedAnywhere('zlib', bytes, Buffer.from([0x78, second]), (at) =>
      inflateSync(at, { ...partial, ...bound }),
    )
  }
  // These two have no mark of their own, so they are tried on the whole.
  yield* opened('deflate', () => inflateRawSync(bytes, { ...partial, ...bound }))
  yield* opened('brotli', () =>
    brotliDecompressSync(bytes, { finishFlush: zlib.BROTLI_OPERATION_FLUSH, ...bound }),
  )
  const text = bytes.toString('latin1')
  for (const [run] of text.matchAll(/(?:[0-9a-f]{2}){24,}/gi)) {
    yield { name: 'hex', bytes: Buffer.from(run, 'hex') }
  }
  for (const [run] of text.matchAll(/[A-Za-z0-9+/_-]{32,}/g)) {
    yield { name: 'base64', bytes: Buffer.from(run, 'base64') }
  }
}

/** Gunzip itself refuses a member that something else follows. */
function inflateMember(at: Buffer): Buffer {
  const flags = at[3] ?? 0xff
  if (flags > 0x1f) throw new Error('This is no header.')
  let start = 10
  if (flags & 4) start += 2 + at.readUInt16LE(start)
  for (const flag of [8, 16]) if (flags & flag) start = at.indexOf(0, start) + 1
  if (flags & 2) start += 2
  return inflateRawSync(at.subarray(start), { ...partial, ...bound })
}

const partial = { finishFlush: zlib.Z_SYNC_FLUSH }
const bound = { maxOutputLength: 64 * 1024 * 1024 }

function* inflatedAnywhere(
  name: string,
  bytes: Buffer,
  mark: Buffer,
  inflate: (at: Buffer) => Buffer,
): Generator<Layer> {
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
    yield* opened(name, () => inflate(bytes.subarray(at)))
  }
}

function* opened(name: string, open: () => Buffer): Generator<Layer> {
  let bytes: Buffer
  try {
    bytes = open()
  } catch {
    // The mark stood there by chance.
    return
  }
  if (bytes.length > 0) yield { name, bytes }
}

/**
 * Those of the texts that occur, each character followed by at most one stray byte: so texts are
 * found in what PostgreSQL compressed (pglz), too. For files of a database.
 */
export function findTolerantly(bytes: Buffer, texts: readonly string[]): string[] {
  const latin1 = bytes.toString('latin1')
  return texts.filter((text) => {
    // Both cases as a class: that is searched faster than without regard to case.
    const characters = [...text].map((one) => `[${one}${one.toUpperCase()}]`)
    return new RegExp(characters.join('[^]?')).test(latin1)
  })
}
