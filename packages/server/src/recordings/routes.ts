import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { getSession, listSessionsOfPerson, readSessionEvents } from '@lethe/contract/session.ts'
import { invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { type Cursors, readPage } from '../http/page.ts'
import type { Log } from '../log.ts'
import { externalIdOf, personNotFound } from '../persons/store.ts'
import { existingSession, sendEvents } from './send-events.ts'
import { sessionEvents } from './session-events.ts'
import { listSessionsOfPerson as listRows, listTabs } from './session-store.ts'
import type { Recordings } from './upload.ts'

export interface SessionOptions {
  recordings: Recordings
  cursors: Cursors
  log: Log
}

export const sessionRoutes: FastifyPluginAsyncTypebox<SessionOptions> = async (app, options) => {
  const { recordings, cursors, log } = options
  const { db } = recordings

  app.route({
    ...listSessionsOfPerson,
    handler: async ({ projectId, params, query: { limit, cursor } }) => {
      const externalId = externalIdOf(params)
      const page = { cursors, list: ['sessions of person', projectId, externalId], limit, cursor }
      const { rows, nextCursor } = await readPage(
        page,
        ['startedAt', 'id'],
        async (after, count) => {
          const found = await listRows(db.sql, projectId, externalId, after, count)
          if (!found) throw personNotFound()
          return found
        },
      )
      return { sessions: rows, nextCursor }
    },
  })

  app.route({
    ...getSession,
    handler: async ({ projectId, params }) => {
      const session = await existingSession(db.short, projectId, params.id)
      return { session, tabs: await listTabs(db.sql, projectId, session.id) }
    },
  })

  app.route({
    ...readSessionEvents,
    handler: async (request, reply) => {
      const { projectId, params, query } = request
      const session = await existingSession(db.short, projectId, params.id)
      const { tab = null } = query
      if (!isStorable(tab ?? '')) throw invalid('/query/tab', 'has U+0000')
      reply.type('application/x-ndjson; charset=utf-8').header('cache-control', 'no-store')
      if (request.method === 'HEAD') return reply.send('')
      const events = sessionEvents(recordings, log, projectId, session, tab)
      return sendEvents(events, request, reply, log)
    },
  })
}
