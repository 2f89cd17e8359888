import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { link, lstat, open, realpath, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { makeDirectories, syncDirectory, unlessMissing } from './durable.ts'

/** The keys that wrap data keys. New wraps use `current`; the others only unwrap. */
export interface MasterKeys {
  current: { id: string; key: KeyObject }
  byId: ReadonlyMap<string, KeyObject>
}

/** A setting or file has no usable master keys. The message says what to do, and shows no key. */
export class MasterKeyRefused extends Error {
  override readonly name = 'MasterKeyRefused'
}

const keyBytes = 32
const idPattern = /^[A-Za-z0-9_-]{1,32}$/

/**
 * Reads `id:base64,id:base64…`, separated by commas or line ends. The first key wraps. Each is 32
 * bytes. Throws `MasterKeyRefused`.
 */
export function parseMasterKeys(text: string): MasterKeys {
  const byId = new Map<string, KeyObject>()
  for (const entry of text.split(/[,\r\n]+/).map((part) => part.trim())) {
    if (entry === '') continue
    const colon = Math.max(entry.indexOf(':'), 0)
    const [id, encoded] = [entry.slice(0, colon), entry.slice(colon + 1)]
    if (!idPattern.test(id) || encoded === '') {
      throw new MasterKeyRefused(
        'A master key is written id:key, for example k1:$(openssl rand -base64 32), with an id ' +
          'of at most 32 letters, digits, _ and -.',
      )
    }
    if (byId.has(id)) throw new MasterKeyRefused(`Two master keys have the id ${id}.`)
    byId.set(id, keyOf(id, encoded))
  }
  const [first] = byId
  if (!first) throw new MasterKeyRefused('The setting contains no master key.')
  return { current: { id: first[0], key: first[1] }, byId }
}

function keyOf(id: string, encoded: string): KeyObject {
  const bytes = Buffer.from(encoded, 'base64')
  // Buffer skips invalid characters; encoding again shows whether it did.
  const standard = encoded.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  if (bytes.length !== keyBytes || bytes.toString('base64').replace(/=+$/, '') !== standard) {
    throw new MasterKeyRefused(`The master key ${id} is not 32 bytes in base64.`)
  }
  const key = createSecretKey(bytes)
  bytes.fill(0)
  return key
}

/**
 * Reads the master keys from a file. If it is missing, creates it with one random key, readable
 * only by its owner. Processes that start at the same time all get the same key.
 *
 * `apartFrom` are the folders of the database and the blobs: a key stored there would be in each
 * copy of the data it protects. Throws `MasterKeyRefused` for such a path, for a file that others
 * may read, and for one without keys; a file that cannot be written or read is a fault.
 */
export async function masterKeyFile(
  path: string,
  apartFrom: readonly string[] = [],
): Promise<MasterKeys> {
  const folder = dirname(resolve(path))
  await makeDirectories(folder)
  const place = join(await realpath(folder), basename(path))
  await assertApart(place, apartFrom)
  if (!(await isThere(place))) await createKeyFile(place)
  // Even if it existed: the process that created it may not have synced it yet, and if the key is
  // lost in a power failure, so is everything it has wrapped by then.
  await syncDirectory(dirname(place))
  await assertApart(await realpath(place), apartFrom)
  const file = await open(place, 'r')
  try {
    const stats = await file.stat()
    if ((stats.mode & 0o077) !== 0) {
      throw new MasterKeyRefused('Other users can read the master key file: run chmod 600 on it.')
    }
    return parseMasterKeys(await file.readFile('utf8'))
  } finally {
    await file.close()
  }
}

async function assertApart(place: string, apartFrom: readonly string[]): Promise<void> {
  for (const other of apartFrom) {
    if (place.startsWith(`${await realpathIfAny(other)}${sep}`)) {
      throw new MasterKeyRefused(
        'The master key file is inside a folder that it encrypts: move it out.',
      )
    }
  }
}

/**
 * Writes a temporary file and names it with `link`, which fails if the name exists: nobody reads
 * half a key, and one of several processes wins.
 */
async function createKeyFile(path: string): Promise<void> {
  const folder = dirname(path)
  const temporary = join(folder, `.master-key-${randomUUID()}`)
  const file = await open(temporary, 'wx', 0o600)
  try {
    // A random ID: if the file is lost and created again, data keys tell which key is missing.
    const id = `k${randomBytes(4).toString('hex')}`
    await file.writeFile(`${id}:${randomBytes(keyBytes).toString('base64')}\n`)
    await file.sync()
    await link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  } finally {
    await file.close()
    await unlink(temporary)
  }
}

async function isThere(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(unlessMissing)
  return stats !== undefined
}

async function realpathIfAny(path: string): Promise<string> {
  return (await realpath(path).catch(unlessMissing)) ?? resolve(path)
}
