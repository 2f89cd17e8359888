/** Makes anew what is generated and committed: openapi.json and the README's table of settings. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildApp } from '../packages/server/src/app.ts'
import { settingsTable } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { createMetrics } from '../packages/server/src/metrics.ts'
import { connect } from '../packages/server/src/sql.ts'

const root = join(import.meta.dirname, '..')

// Nothing here asks the database anything, so there need not be one.
const db = connect({ connection: 'postgres://nobody@127.0.0.1:1/none' })
const app = await buildApp({
  db,
  log: createLog('silent'),
  metrics: createMetrics(),
  cursorKey: Buffer.alloc(32),
})
await app.ready()
writeFileSync(join(root, 'openapi.json'), `${JSON.stringify(app.swagger(), null, 2)}\n`)
await app.close()
await db.end()

const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [before, after] = ['<!-- settings -->', '<!-- /settings -->']
const begin = readme.indexOf(before) + before.length
const end = readme.indexOf(after)
writeFileSync(
  join(root, 'README.md'),
  `${readme.slice(0, begin)}\n${settingsTable()}\n${readme.slice(end)}`,
)
