import { type FileHandle, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { promisify } from 'node:util'
import { constants, gunzip, gzip } from 'node:zlib'
import { syncDirectory } from '../blobs/durable.ts'
import type { MasterKeys } from '../blobs/master-keys.ts'
import {
  createDataKey,
  openPart,
  SealBroken,
  sealPart,
  unwrapDataKey,
  wrapDataKey,
} from '../blobs/sealing.ts'
import { type BackupRecord, BackupRefused, type OnProgress, type Schema } from './records.ts'

/*
 * A line of JSON, then parts: 4 bytes of length (big endian), and as many sealed bytes of a
 * compressed record, which is JSON except for the rows of tables. The parts are sealed with a key
 * that is created for the backup and stored in the first line, wrapped by the master key: without
 * the master key a backup cannot be read. Each part is sealed for its place, and the last one is
 * marked as the last, so that nothing can be removed, added or moved unnoticed.
 */

interface Header {
  format: typeof format
  version: number
  masterKeyId: string
  key: string
}

const format = 'lethe backup'
const version = 1
const headerBytesMaximum = 4_096
const partBytesMaximum = 64_000_000

/** No browser has this ID, so the key of a backup cannot be used as a data key. */
const owner = { projectId: 0, browserId: 'backup' }

const compress = (bytes: Uint8Array) => promisify(gzip)(bytes, { level: constants.Z_BEST_SPEED })
const decompress = promisify<Uint8Array, Buffer>(gunzip)

/** The first byte of a record. */
const rowsMark = 1
const jsonMark = 0

/**
 * Writes a backup that only this user can read. The file gets its name when it is complete and on
 * disk; if that fails, nothing is left of it. Returns its size and its last record.
 */
export async function writeBackup(
  path: string,
  masterKeys: MasterKeys,
  records: AsyncIterable<BackupRecord>,
): Promise<{ bytes: number; end: Extract<BackupRecord, { kind: 'end' }> }> {
  if (await stat(path).catch(() => undefined)) {
    throw new BackupRefused(`The file ${path} already exists: choose another name.`)
  }
  if (!(await stat(dirname(path)).catch(() => undefined))) {
    throw new BackupRefused(`The folder ${dirname(path)} does not exist: create it first.`)
  }
  const unfinished = `${path}.unfinished`
  await rm(unfinished, { force: true })
  const file = await open(unfinished, 'wx', 0o600).catch((error) => {
    throw fileRefused(error, path)
  })
  try {
    const written = await writeParts(file, masterKeys, records)
    await file.sync()
    await rename(unfinished, path)
    await syncDirectory(dirname(resolve(path)))
    return written
  } catch (error) {
    await rm(unfinished, { force: true })
    throw fileRefused(error, path)
  } finally {
    await file.close()
  }
}

async function writeParts(
  file: FileHandle,
  masterKeys: MasterKeys,
  records: AsyncIterable<BackupRecord>,
): Promise<{ bytes: number; end: Extract<BackupRecord, { kind: 'end' }> }> {
  const key = createDataKey()
  const { masterKeyId, wrapped } = wrapDataKey(masterKeys, key, owner)
  const header: Header = {
    format,
    version,
    masterKeyId,
    key: Buffer.from(wrapped).toString('base64'),
  }
  const line = JSON.stringify(header)
  await file.writeFile(`${line}\n`)
  let bytes = line.length + 1
  let number = 0
  for await (const record of records) {
    const sealed = sealPart(key, line, number++, await compress(plainOf(record)))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(sealed.length)
    await file.writeFile(Buffer.concat([length, sealed]))
    bytes += length.length + sealed.length
    if (record.kind === 'end') return { bytes, end: record }
  }
  throw new Error('A backup has no end.')
}

function plainOf(record: BackupRecord): Buffer {
  return record.kind === 'rows'
    ? Buffer.concat([Buffer.of(rowsMark), record.bytes])
    : Buffer.concat([Buffer.of(jsonMark), Buffer.from(JSON.stringify(record))])
}

function recordOf(plain: Buffer): BackupRecord {
  const rest = plain.subarray(1)
  return plain[0] === rowsMark ? { kind: 'rows', bytes: rest } : JSON.parse(rest.toString())
}

export interface OpenedBackup {
  schema: Schema
  /** All records, `schema` first. They can be read once. */
  records: AsyncIterable<BackupRecord>
  close(): Promise<void>
}

/** Throws `BackupRefused` for a file that is no backup, is damaged, or has another master key. */
export async function openBackup(
  path: string,
  masterKeys: MasterKeys,
  onProgress: OnProgress = () => {},
): Promise<OpenedBackup> {
  const file = await open(path, 'r').catch((error) => {
    throw fileRefused(error, path)
  })
  try {
    const { line, header } = await readHeader(file, path)
    const key = keyOf(header, masterKeys)
    const parts = readParts(file, path, { line, key, onProgress })
    const first = (await parts.next()).value as BackupRecord | undefined
    if (first?.kind !== 'schema') throw damaged(path)
    return { schema: first, records: withFirst(first, parts), close: () => file.close() }
  } catch (error) {
    await file.close()
    throw fileRefused(error, path)
  }
}

async function* withFirst(first: BackupRecord, rest: AsyncGenerator<BackupRecord>) {
  yield first
  yield* rest
}

async function readHeader(
  file: FileHandle,
  path: string,
): Promise<{ line: string; header: Header }> {
  const start = await readBytes(file, 0, headerBytesMaximum)
  const line = start.subarray(0, Math.max(start.indexOf('\n'), 0)).toString()
  let header: Partial<Header> | undefined
  try {
    header = JSON.parse(line)
  } catch {
    // Reported below.
  }
  if (header?.format !== format) throw new BackupRefused(`${path} is not a backup of Lethe.`)
  if (header.version !== version) {
    throw new BackupRefused(`${path} was made by a newer version of Lethe: use that one.`)
  }
  return { line, header: header as Header }
}

function keyOf({ masterKeyId, key }: Header, masterKeys: MasterKeys): Uint8Array {
  try {
    return unwrapDataKey(masterKeys, { masterKeyId, wrapped: Buffer.from(key, 'base64') }, owner)
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error
    throw new BackupRefused(
      `The backup is encrypted with another master key (its id is ${masterKeyId}): put that key into MASTER_KEY or DATA_DIR/keys/master-key.`,
    )
  }
}

async function* readParts(
  file: FileHandle,
  path: string,
  { line, key, onProgress }: { line: string; key: Uint8Array; onProgress: OnProgress },
): AsyncGenerator<BackupRecord> {
  const { size } = await file.stat()
  let at = Buffer.byteLength(line) + 1
  const take = async (length: number): Promise<Buffer> => {
    const bytes = await readBytes(file, at, length)
    if (bytes.length < length) {
      throw new BackupRefused(`${path} is incomplete. Use another backup.`)
    }
    at += length
    return bytes
  }
  for (let number = 0; ; number++) {
    const length = (await take(4)).readUInt32BE()
    if (length > partBytesMaximum) throw damaged(path)
    const sealed = await take(length)
    let record: BackupRecord
    try {
      record = recordOf(await decompress(openPart(key, line, number, sealed)))
    } catch (error) {
      throw error instanceof SealBroken ? damaged(path) : error
    }
    yield record
    onProgress(at, size)
    if (record.kind !== 'end') continue
    if (at < size) throw damaged(path)
    return
  }
}

async function readBytes(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

const damaged = (path: string) => new BackupRefused(`${path} is damaged. Use another backup.`)

/** Explains file errors, which would otherwise be explained in terms of DATA_DIR. */
function fileRefused(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  const words = {
    ENOSPC: `The disk of ${path} is full: the backup was not written.`,
    EDQUOT: `The disk of ${path} is full: the backup was not written.`,
    ENOENT: `The file ${path} does not exist.`,
    EACCES: `This user has no access to ${path}.`,
    EISDIR: `${path} is a folder: name a file.`,
    EROFS: `${path} is on a read-only file system.`,
  }[code ?? '']
  return words === undefined ? error : new BackupRefused(words, { cause: error })
}
