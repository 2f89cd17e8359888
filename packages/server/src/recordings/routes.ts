import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  getSession,
  listSessionsOfPerson,
  readSessionEvents,
  type Session,
} from '@lethe/contract/session.ts'
import { ApiError, invalid } from '../api-error.ts'
import type { Cursors } from '../cursor.ts'
import { isStorable } from '../json-body.ts'
import type { Log } from '../log.ts'
import { isUuid } from '../uuid.ts'
import { sendEvents, sessionNotFound } from './send-events.ts'
import { sessionEvents } from './session-events.ts'
import {
  findSession,
  listSessionsOfPerson as listRows,
  listTabs,
  type SessionPosition,
} from './session-store.ts'
import type { Recordings } from './upload.ts'

export interface SessionOptions {
  recordings: Recordings
  cursors: Cursors
  log: Log
}

const externalIdMaximum = 200

export const sessionRoutes: FastifyPluginAsyncTypebox<SessionOptions> = async (app, options) => {
  const { recordings, cursors, log } = options
  const { db } = recordings

  app.route({
    ...listSessionsOfPerson,
    handler: async ({ projectId, params: { externalId }, query: { limit, cursor } }) => {
      if (!isStorable(externalId)) throw invalid('/params/externalId', 'has U+0000')
      const list = ['sessions of person', projectId, externalId]
      const after = cursor === undefined ? null : positionOf(cursors.decode(list, cursor))
      const rows =
        [...externalId].length > externalIdMaximum
          ? undefined
          : await listRows(db.sql, projectId, externalId, after, limit + 1)
      if (!rows) throw new ApiError('person_not_found', 'No person with this externalId.')
      const sessions = rows.slice(0, limit)
      const last = rows.length > limit ? sessions.at(-1) : undefined
      return { sessions, nextCursor: last ? cursors.encode(list, textOf(last)) : null }
    },
  })

  app.route({
    ...getSession,
    handler: async ({ projectId, params }) => {
      const session = await existingSession(projectId, params.id)
      return { session, tabs: await listTabs(db.sql, projectId, session.id) }
    },
  })

  app.route({
    ...readSessionEvents,
    handler: async (request, reply) => {
      const { projectId, params, query } = request
      const session = await existingSession(projectId, params.id)
      const { tab = null } = query
      if (!isStorable(tab ?? '')) throw invalid('/query/tab', 'has U+0000')
      reply.type('application/x-ndjson; charset=utf-8').header('cache-control', 'no-store')
      if (request.method === 'HEAD') return reply.send('')
      const events = sessionEvents(recordings, projectId, session, tab)
      return sendEvents(events, request, reply, log)
    },
  })

  async function existingSession(projectId: number, id: string): Promise<Session> {
    const session = isUuid(id) ? await findSession(db.short, projectId, id) : undefined
    if (!session) throw sessionNotFound()
    return session
  }
}

function textOf({ startedAt, id }: SessionPosition): string {
  return `${startedAt} ${id}`
}

function positionOf(text: string): SessionPosition {
  const [startedAt = '', id = ''] = text.split(' ')
  return { startedAt, id }
}
