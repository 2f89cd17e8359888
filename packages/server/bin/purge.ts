import { defineCommand } from 'citty'
import type { Config } from '../src/config.ts'
import { type PurgeObstacle, type PurgeOptions, purge as purgeFiles } from '../src/erasure/purge.ts'
import { JobFailed, jsonLines, print, withDatabase } from './command.ts'
import type { Opened } from './open.ts'
import { type OpenedErasure, withErasure } from './open-erasure.ts'
import { withProgress } from './progress.ts'

/** The default for the embedded database. */
const automaticMinute = 3 * 60 + 30

export function minuteOfPurge({ PURGE_AT, DATABASE_URL }: Config): number | undefined {
  if (PURGE_AT !== 'auto') return PURGE_AT
  return DATABASE_URL === '' ? automaticMinute : undefined
}

export function purgeOptions(
  { connection, superuser }: Opened,
  { options, storage }: OpenedErasure,
): PurgeOptions {
  const { keyConnection } = storage
  const { db, signer } = options
  return {
    db,
    signer,
    databases: [
      { name: 'main', connection, ...(superuser && { logConnection: superuser }) },
      ...(keyConnection ? [{ name: 'keys' as const, connection: keyConnection }] : []),
    ],
  }
}

const words: Record<PurgeObstacle, string> = {
  locked: 'The table is in use: run the purge again at a quieter time.',
  no_right: 'The database role lacks rights: docs/erasure.md says which it needs.',
  disk_full: 'The disk of the database has no room for a copy of the table.',
  old_transaction:
    'An open or prepared transaction of any database of the server, or a replica, still needs rows that were deleted meanwhile: end it, and run the purge again.',
  replication_slot:
    'A replication slot that is behind still needs old statistics: let it catch up or drop it, and run the purge again.',
  log_kept:
    'A replication slot, wal_keep_size or an archive that is behind keeps old files of the write-ahead log: resolve that, and run the purge again.',
}

export const purge = defineCommand({
  meta: {
    name: 'purge',
    description: 'Remove what the database files still hold of erased people.',
  },
  args: { json: jsonLines },
  run: ({ args }) =>
    withDatabase((opened) =>
      withErasure(opened, async (erasure) => {
        const outcome = await withProgress(args.json, ({ step }) => {
          step('Purging')
          const onPart = (part: string) => step(`Purging ${part}`)
          return purgeFiles({ ...purgeOptions(opened, erasure), onPart })
        })
        const { jobs, purgedAt, left } = outcome
        if (args.json) print(JSON.stringify(outcome))
        else if (purgedAt)
          print(
            `As of ${purgedAt}, the database files hold nothing of the people of ${jobs} deletion jobs.`,
          )
        else if (left.length === 0) print('There is nothing to purge.')
        else for (const { part, code } of left) print(`${part}: ${words[code]}`)
        if (left.length > 0)
          throw new JobFailed(`The purge is incomplete: ${left.length} parts are left.`)
      }),
    ),
})
