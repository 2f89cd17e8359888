import { defineCommand } from 'citty'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import { archiveAudit, readAuditArchive } from '../src/members/audit-archive.ts'
import { jsonLines, print, secondsOf, withDatabase } from './command.ts'
import { blobsOptions, openMasterKeys } from './open-storage.ts'
import { withProgress } from './progress.ts'

const archive = defineCommand({
  meta: { name: 'archive', description: 'Move old entries of the audit log to the blob store.' },
  args: {
    'older-than': {
      type: 'string',
      required: true,
      description: 'The age of the entries to move, such as 90d.',
    },
    json: jsonLines,
  },
  run: ({ args }) =>
    withDatabase(async ({ config, db }) => {
      const seconds = secondsOf(args['older-than'])
      const masterKeys = await openMasterKeys(config)
      const blobs = await openBlobs(blobsOptions(config))
      try {
        const archived = await withProgress(args.json, ({ step }) => {
          const onProgress = step('Archiving the audit log')
          return archiveAudit(db.sql, { blobs, masterKeys }, seconds, (done) => onProgress(done, 0))
        })
        if (args.json) print(JSON.stringify({ archived }))
        else print(`Entries moved to the blob store: ${archived}.`)
      } finally {
        blobs.close()
      }
    }),
})

const show = defineCommand({
  meta: { name: 'show', description: 'Print the archived entries as JSON lines, oldest first.' },
  run: () =>
    withDatabase(async ({ config }) => {
      const masterKeys = await openMasterKeys(config)
      const blobs = await openBlobs(blobsOptions(config))
      try {
        for await (const lines of readAuditArchive({ blobs, masterKeys }))
          process.stdout.write(lines)
      } finally {
        blobs.close()
      }
    }),
})

export const audit = defineCommand({
  meta: { name: 'audit', description: 'Move old entries of the audit log to the blob store.' },
  subCommands: { archive, show },
})
