import { defineCommand } from 'citty'
import { distribute } from '../src/distribute.ts'
import { migrate as migrateSchema } from '../src/migrate.ts'
import { jsonLines, print, withDatabase } from './command.ts'
import { withProgress } from './progress.ts'

export const migrate = defineCommand({
  meta: { name: 'migrate', description: 'Run the database migrations, as serve does at start.' },
  args: {
    json: jsonLines,
    distribute: {
      type: 'boolean',
      description: 'Spread the tables over the nodes of a Citus cluster, by project.',
    },
  },
  run: async ({ args }) => {
    let version = ''
    await withProgress(args.json, async ({ step }) => {
      step('Migrating the database')
      await withDatabase(async ({ facts, connection, config }) => {
        version = facts.version
        if (!args.distribute) return
        step('Spreading the tables over the nodes')
        // Without KEY_DATABASE_URL the data keys are distributed too.
        if (config.KEY_DATABASE_URL === '') await migrateSchema(connection, 'keys')
        await distribute(connection)
      })
    })
    if (args.json) print(JSON.stringify({ isUpToDate: true, postgresql: version }))
    else print(`The database (PostgreSQL ${version}) is up to date.`)
  },
})
