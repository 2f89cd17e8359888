import { defineCommand } from 'citty'
import { openBackup } from '../src/backup/file.ts'
import { load } from '../src/backup/load.ts'
import { BackupRefused, type Schema } from '../src/backup/records.ts'
import type { Config } from '../src/config.ts'
import type { Reapplied } from '../src/erasure/reapply.ts'
import { checkDatabase } from '../src/migrate.ts'
import { countsOf, inWords } from './backup.ts'
import { jsonLines, print, withDatabase } from './command.ts'
import { compareLedger, withoutLedger } from './compare-ledger.ts'
import { findPlace, reachOnly } from './open.ts'
import { withErasure } from './open-erasure.ts'
import { openMasterKeys } from './open-storage.ts'
import { type Progress, withProgress } from './progress.ts'
import { readSettings } from './settings.ts'

export const restore = defineCommand({
  meta: {
    name: 'restore',
    description:
      'Restore a backup into an empty database, and erase again everybody who was erased since.',
  },
  args: {
    file: { type: 'positional', required: true, description: 'A file written by `lethe backup`.' },
    json: jsonLines,
    ...withoutLedger,
  },
  run: ({ args }) =>
    withProgress(args.json, async (progress) => {
      const { createdAt, rows } = await loadFrom(args.file, progress)
      const { persons, browsers } = await applyLedger(args['without-ledger'], progress)
      progress.end()
      const counts = countsOf(rows)
      if (args.json) {
        print(
          JSON.stringify({
            file: args.file,
            createdAt,
            ...counts,
            erasedAgain: { persons, browsers },
          }),
        )
        return
      }
      print(`Restored the backup of ${createdAt}: ${inWords(counts)}.`)
      print(`Erased again: ${persons} persons, and ${browsers} browsers without a person.`)
    }),
})

async function loadFrom(path: string, progress: Progress): ReturnType<typeof load> {
  const config = readSettings()
  const onProgress = progress.step('Restoring the database')
  const backup = await openBackup(path, await openMasterKeys(config), onProgress)
  try {
    refuseOtherKeys(backup.schema, config)
    const { place, close } = await findPlace(config)
    try {
      const connection = await reachOnly('DATABASE_URL', place)
      await checkDatabase(connection)
      return await load(connection, backup.records)
    } finally {
      await close()
    }
  } finally {
    await backup.close()
  }
}

function refuseOtherKeys({ hasDataKeys }: Schema, { KEY_DATABASE_URL }: Config): void {
  if (hasDataKeys === (KEY_DATABASE_URL === '')) return
  throw new BackupRefused(
    hasDataKeys
      ? 'This backup contains the data keys of recordings, but KEY_DATABASE_URL is set: restore it without KEY_DATABASE_URL.'
      : 'This backup does not contain the data keys of recordings: set KEY_DATABASE_URL to the database that has them.',
  )
}

async function applyLedger(isWithout: boolean | undefined, { step }: Progress): Promise<Reapplied> {
  const onProgress = step('Comparing with the ledger of erasures')
  let reapplied: Reapplied | undefined
  await withDatabase((opened) =>
    withErasure(opened, async (erasure) => {
      reapplied = await compareLedger(opened, erasure, isWithout, onProgress)
    }),
  )
  return reapplied as Reapplied
}
