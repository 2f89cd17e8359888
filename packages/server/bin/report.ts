import { BackupRefused } from '../src/backup/records.ts'
import { BlobFault } from '../src/blobs/blobs.ts'
import { MasterKeyRefused } from '../src/blobs/master-keys.ts'
import { SealBroken } from '../src/blobs/sealing.ts'
import { SettingRefused } from '../src/config.ts'
import { explainDatabaseFault } from '../src/database-faults.ts'
import { EmbeddedError } from '../src/embedded/embedded.ts'
import { LedgerMissing, ReapplyFailed } from '../src/erasure/reapply.ts'
import { ReceiptRefused } from '../src/erasure/receipts.ts'
import { DatabaseRefused } from '../src/migrate.ts'
import { JobFailed, UsageError } from './command.ts'
import { ofStore, StartFailed } from './patience.ts'
import { readSettings } from './settings.ts'

/** An import did not complete; the message says where to continue. */
export class ImportStopped extends Error {
  override readonly name = 'ImportStopped'
}

type Fault = Error & { code?: string; path?: string; syscall?: string }

/** Prints why the command failed, in one line. Returns the exit code. */
export function report(error: unknown): number {
  process.stderr.write(`lethe: ${wordsFor(error as Fault).replaceAll(/\s*\n\s*/g, ' ')}\n`)
  if (isUsage(error as Fault)) return 2
  return error instanceof JobFailed ? 3 : 1
}

function isUsage(error: Fault): boolean {
  return (error instanceof UsageError ||
    error.code?.startsWith('E_') ||
    error.name === 'CLIError') as boolean
}

/** Errors whose messages are written for operators and contain no data. */
const forOperators = [
  JobFailed,
  StartFailed,
  SettingRefused,
  MasterKeyRefused,
  ReapplyFailed,
  LedgerMissing,
  ReceiptRefused,
  DatabaseRefused,
  EmbeddedError,
  BackupRefused,
  ImportStopped,
]

export function wordsFor(error: Fault): string {
  if (isUsage(error) || forOperators.some((one) => error instanceof one)) return error.message
  if (error instanceof SealBroken) return masterKeyWords(error)
  if (error instanceof BlobFault) return ofStore(readSettings())(error)?.words ?? error.message
  const place = { setting: 'DATABASE_URL', host: 'the database', port: 5432 }
  return (
    listenWords(error) ??
    fileWords(error) ??
    explainDatabaseFault(error, place)?.words ??
    ownFault(error)
  )
}

function masterKeyWords({ reason, message }: SealBroken): string {
  const where = 'MASTER_KEY or DATA_DIR/keys/master-key'
  if (reason === 'master_key_unknown') {
    return `${message} The secrets in this database are encrypted with it: put it back into ${where}. docs/recordings.md says what is lost without it.`
  }
  return `The master key in ${where} has the right id but is not the key that encrypted the secrets in this database: put the right one back. docs/recordings.md says what is lost without it.`
}

/** Explains why the service cannot listen. */
function listenWords({ code, syscall }: Fault): string | undefined {
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return undefined
  switch (code) {
    case 'EADDRINUSE':
      return 'Another program uses the port: set PORT to a free one.'
    case 'EACCES':
      return 'This user may not listen on a port below 1024: set PORT to a higher one.'
    case 'EADDRNOTAVAIL':
      return 'HOST is not an address of this machine: set it to 127.0.0.1, to another address of the machine, or to 0.0.0.0 for all.'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'HOST cannot be resolved to an address: set it to an address of this machine, as in 127.0.0.1, or 0.0.0.0 for all.'
    default:
      return `Listening on HOST and PORT failed (${code}).`
  }
}

function fileWords({ code, path }: Fault): string | undefined {
  if (path === undefined && code !== 'ENOSPC') return undefined
  const what = path === undefined ? 'A file' : path
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of ${what} (DATA_DIR) is full: make room there.`
    case 'EROFS':
      return `${what} is on a file system that is read-only: set DATA_DIR to another folder.`
    case 'EACCES':
    case 'EPERM':
      return `This user has no access to ${what}: make it the owner, or set DATA_DIR to another folder.`
    case 'ENOENT':
    case 'EISDIR':
    case 'ENOTDIR':
      return `${what} does not exist or is not of the expected kind (${code}).`
    default:
      return undefined
  }
}

/** A bug. Its message may contain data, so only its place is printed. */
function ownFault({ name, code, stack = '' }: Fault): string {
  const frame = /\(?([^\s()]+\/packages\/[^\s()]+|[^\s()]+\.[jt]s:\d+:\d+)\)?/.exec(
    stack.split('\n').find((line) => /^\s+at .*(?:packages|dist)\//.test(line)) ?? '',
  )?.[1]
  const place = frame?.replace(/^.*\/(?=packages\/|dist\/)/, '') ?? 'an unknown place'
  return `This is a bug in Lethe (${[name, code].filter(Boolean).join(' ')} at ${place}): please report it.`
}
