import { defineCommand } from 'citty'
import { upgradeCluster } from '../src/backup/upgrade.ts'
import { countsOf, inWords } from './backup.ts'
import { jsonLines, print, UsageError } from './command.ts'
import { withProgress } from './progress.ts'
import { readSettings } from './settings.ts'

export const upgradeDatabase = defineCommand({
  meta: {
    name: 'upgrade-database',
    description: 'Upgrade the embedded database to the PostgreSQL version that comes with Lethe.',
  },
  args: {
    programs: {
      type: 'string',
      description: 'The folder that holds bin/postgres of the old version.',
    },
    json: jsonLines,
  },
  run: async ({ args }) => {
    const { DATABASE_URL, DATA_DIR } = readSettings()
    if (DATABASE_URL !== '') {
      throw new UsageError(
        'This command upgrades the embedded database, but DATABASE_URL names your own: upgrade that with the tools of PostgreSQL.',
      )
    }
    const done = await withProgress(args.json, ({ step }) =>
      upgradeCluster({
        dataDir: DATA_DIR,
        ...(args.programs !== undefined && { programs: args.programs }),
        onProgress: step('Copying the database'),
      }),
    )
    if (args.json) {
      const { rows, ...rest } = done ?? { rows: {} }
      print(JSON.stringify({ isUpgraded: done !== undefined, ...rest, ...countsOf(rows) }))
    } else if (done === undefined) print('There is nothing to do: the database is up to date.')
    else {
      print(`PostgreSQL ${done.from} → ${done.to}: ${inWords(countsOf(done.rows))}.`)
      print(`The old database is kept in ${done.kept}.`)
      print('Delete it once everything works: it still holds people who are erased from now on.')
    }
  },
})
