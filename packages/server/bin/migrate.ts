import { defineCommand } from 'citty'
import { print, withDatabase } from './command.ts'

export const migrate = defineCommand({
  meta: { name: 'migrate', description: 'Bring the database up to date, as serve does by itself.' },
  run: () =>
    withDatabase(async ({ facts }) => {
      print(`The database (PostgreSQL ${facts.version}) is up to date.`)
    }),
})
