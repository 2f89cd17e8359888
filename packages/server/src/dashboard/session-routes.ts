import {
  getSession,
  getSessionEvents,
  listSessions as listSessionsEndpoint,
  type SessionSummary,
} from '@lethe/contract/dashboard-sessions.ts'
import { ApiError, invalid } from '../api-error.ts'
import { isStorable } from '../json-body.ts'
import { sendEvents, sessionNotFound } from '../recordings/send-events.ts'
import { sessionEvents } from '../recordings/session-events.ts'
import { findSession, listTabs } from '../recordings/session-store.ts'
import type { Sql } from '../sql.ts'
import { isUuid } from '../uuid.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { instantOf } from './instant.ts'
import { isPersonId } from './person-id.ts'
import {
  findNeighbours,
  findSessionSummary,
  listSessions,
  type SessionFilter,
  type SessionPosition,
} from './session-store.ts'

export function sessionRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, cursors, recordings, log } = context

  app.route({
    ...listSessionsEndpoint,
    handler: async ({ projectId, query }) => {
      const { limit, cursor, ...asked } = query
      const filter = filterOf(asked)
      if (filter === undefined) return { sessions: [], nextCursor: null }
      const list = ['sessions of the dashboard', projectId, ...Object.entries(filter)]
      const after = cursor === undefined ? null : positionOf(cursors.decode(list, cursor))
      const { sessions, next } = await listSessions(db.sql, projectId, filter, after, limit)
      return { sessions, nextCursor: next ? cursors.encode(list, textOf(next)) : null }
    },
  })

  app.route({
    ...getSession,
    handler: async ({ projectId, params }) => {
      const session = await existingSession(db.sql, projectId, params.sessionId)
      const tabs = await listTabs(db.sql, projectId, session.id)
      return {
        session,
        tabs: tabs.map(({ tab, chunks, bytes, firstChunkAt, lastChunkAt }) => ({
          id: tab,
          chunks,
          bytes,
          firstChunkAt: firstChunkAt ?? session.startedAt,
          lastChunkAt: lastChunkAt ?? session.startedAt,
        })),
        ...(await findNeighbours(db.sql, projectId, session)),
      }
    },
  })

  app.route({
    ...getSessionEvents,
    handler: async (request, reply) => {
      const { projectId, params, query } = request
      const { tab, fromChunk = 0 } = query
      if (!isStorable(tab)) throw invalid('/query/tab', 'has U+0000')
      const { sessionId } = params
      const session = isUuid(sessionId)
        ? await findSession(db.sql, projectId, sessionId)
        : undefined
      if (!session || !recordings) throw sessionNotFound()
      reply.type('application/x-ndjson; charset=utf-8')
      if (request.method === 'HEAD') return reply.send('')
      const after = { tab, number: fromChunk - 1, blobKey: '' }
      const events = sessionEvents(recordings, projectId, session, tab, after)
      return sendEvents(events, request, reply, log) as never
    },
  })
}

async function existingSession(sql: Sql, projectId: number, id: string): Promise<SessionSummary> {
  const session = isUuid(id) ? await findSessionSummary(sql, projectId, id) : undefined
  if (!session) throw new ApiError('session_not_found', 'No session with this id.')
  return session
}

/** undefined for a filter that no session can pass, of an id that is none. */
function filterOf({ from, to, ...rest }: SessionFilter): SessionFilter | undefined {
  const { personId, browserId } = rest
  if (personId !== undefined && !isPersonId(personId)) return undefined
  if (browserId !== undefined && !isUuid(browserId)) return undefined
  return {
    ...rest,
    ...(from !== undefined && { from: instantOf(from, '/query/from') }),
    ...(to !== undefined && { to: instantOf(to, '/query/to') }),
  }
}

const textOf = ({ startedAt, id }: SessionPosition) => `${startedAt} ${id}`

function positionOf(text: string): SessionPosition {
  const [startedAt = '', id = ''] = text.split(' ')
  return { startedAt, id }
}
