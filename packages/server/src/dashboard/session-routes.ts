import {
  getSession,
  getSessionEvents,
  listSessions as listSessionsEndpoint,
  type SessionSummary,
} from '@lethe/contract/dashboard-sessions.ts'
import { invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { cursorAt, positionAt } from '../http/page.ts'
import { instantOf, isPersonId, isUuid } from '../http/parameters.ts'
import { writeAuditOfWatching } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { existingSession, sendEvents, sessionNotFound } from '../recordings/send-events.ts'
import { sessionEvents } from '../recordings/session-events.ts'
import type { Sql } from '../sql.ts'
import {
  findNeighbours,
  findSessionSummary,
  listSessions,
  type SessionFilter,
} from './session-store.ts'
import { tabsOf } from './session-tabs.ts'

export function sessionRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, cursors, recordings, log } = context

  app.route({
    ...listSessionsEndpoint,
    handler: async ({ projectId, query }) => {
      const { limit, cursor, ...asked } = query
      const filter = filterOf(asked)
      if (filter === undefined) return { sessions: [], nextCursor: null }
      const list = ['sessions of the dashboard', projectId, ...Object.entries(filter)]
      const names = ['startedAt', 'id'] as const
      const after = positionAt({ cursors, list, cursor }, names)
      const { sessions, next } = await listSessions(db.sql, projectId, filter, after, limit)
      return { sessions, nextCursor: next && cursorAt({ cursors, list }, names, next) }
    },
  })

  app.route({
    ...getSession,
    handler: async ({ projectId, params }) => {
      const session = await existingSummary(db.sql, projectId, params.sessionId)
      return {
        session,
        tabs: await tabsOf(db.sql, projectId, session),
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
      const session = await existingSession(db.sql, projectId, params.sessionId)
      if (!recordings) throw sessionNotFound()
      reply.type('application/x-ndjson; charset=utf-8')
      if (request.method === 'HEAD') return reply.send('')
      await writeAuditOfWatching(db.sql, session.id, { ...actorOf(request), projectId })
      const after = { tab, number: fromChunk - 1 }
      const events = sessionEvents(recordings, log, projectId, session, tab, after)
      return sendEvents(events, request, reply, log) as never
    },
  })
}

async function existingSummary(sql: Sql, projectId: number, id: string): Promise<SessionSummary> {
  const session = isUuid(id) ? await findSessionSummary(sql, projectId, id) : undefined
  if (!session) throw sessionNotFound()
  return session
}

/** Returns undefined for a filter that nothing can match, such as an invalid id. */
function filterOf({ from, to, ...rest }: SessionFilter): SessionFilter | undefined {
  const { personId, browserId } = rest
  if (personId !== undefined && !isPersonId(personId)) return undefined
  if (browserId !== undefined && !isUuid(browserId)) return undefined
  if (!isStorable(`${rest.page}${rest.property}`)) return undefined
  return {
    ...rest,
    ...(from !== undefined && { from: instantOf(from, '/query/from') }),
    ...(to !== undefined && { to: instantOf(to, '/query/to') }),
  }
}
