import { defineCommand } from 'citty'
import { openBlobs } from '../src/blobs/open-blobs.ts'
import { listProjects } from '../src/projects/store.ts'
import { findLostChunks } from '../src/recordings/blob-comparison.ts'
import { JobFailed, jsonLines, print, printTable, withDatabase } from './command.ts'
import { blobsOptions } from './open-storage.ts'
import { withProgress } from './progress.ts'

const check = defineCommand({
  meta: {
    name: 'check',
    description: 'List sessions with chunks that are missing in the blob store.',
  },
  args: { json: jsonLines },
  run: ({ args }) =>
    withDatabase(async ({ config, db }) => {
      const blobs = await openBlobs(blobsOptions(config))
      const sessions = new Map<string, { projectId: string; sessionId: string; chunks: number }>()
      try {
        await withProgress(args.json, async ({ step }) => {
          const projects = await listProjects(db.sql)
          const onProgress = step('Comparing the database with the blob store')
          for (const [index, { id }] of projects.entries()) {
            onProgress(index, projects.length)
            for await (const { sessionId } of findLostChunks({ db, blobs }, id)) {
              const known = sessions.get(sessionId)
              if (known) known.chunks++
              else sessions.set(sessionId, { projectId: String(id), sessionId, chunks: 1 })
            }
          }
        })
      } finally {
        blobs.close()
      }
      const rows = [...sessions.values()]
      if (args.json) print(JSON.stringify({ sessions: rows }))
      else if (rows.length === 0) print('No chunks are missing.')
      else {
        const columns = { projectId: 'PROJECT', sessionId: 'SESSION', chunks: 'MISSING CHUNKS' }
        printTable(rows, columns)
      }
      if (rows.length > 0) throw new JobFailed(`${rows.length} sessions have missing chunks.`)
    }),
})

export const recordings = defineCommand({
  meta: { name: 'recordings', description: 'Check recordings against the blob store.' },
  subCommands: { check },
})
