/** Writes what is generated and committed: openapi.json and the README's table of settings. */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '../packages/server/src/app.ts'
import { openFolder } from '../packages/server/src/blobs/filesystem.ts'
import { parseMasterKeys } from '../packages/server/src/blobs/master-keys.ts'
import { settingsTable } from '../packages/server/src/config.ts'
import { createLog } from '../packages/server/src/log.ts'
import { createMetrics } from '../packages/server/src/metrics.ts'
import { connect } from '../packages/server/src/sql.ts'

const root = join(import.meta.dirname, '..')

// Nothing here asks the database anything, so there need not be one.
const db = connect({ connection: 'postgres://nobody@127.0.0.1:1/none' })
const folder = await mkdtemp(join(tmpdir(), 'lethe-generate-'))
const masterKeys = parseMasterKeys(`k1:${randomBytes(32).toString('base64')}`)
const app = await buildApp({
  db,
  recordings: { db, blobs: await openFolder(folder), browserKeys: { sql: db.sql, masterKeys } },
  log: createLog('silent'),
  metrics: createMetrics(),
  cursorKey: Buffer.alloc(32),
})
await app.ready()
writeFileSync(join(root, 'openapi.json'), `${JSON.stringify(app.swagger(), null, 2)}\n`)
await app.close()
await db.end()
await rm(folder, { recursive: true })

const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [before, after] = ['<!-- settings -->', '<!-- /settings -->']
const begin = readme.indexOf(before) + before.length
const end = readme.indexOf(after)
writeFileSync(
  join(root, 'README.md'),
  `${readme.slice(0, begin)}\n${settingsTable()}\n${readme.slice(end)}`,
)
