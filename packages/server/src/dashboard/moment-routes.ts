import {
  addNote,
  getSharedEvents,
  listMoments,
  makeSessionLink,
  openShared,
  removeNote,
  withdrawSessionLink,
} from '@lethe/contract/dashboard-moments.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { addressRangeOf } from '../http/network.ts'
import { isUuid } from '../http/parameters.ts'
import { permissionsOf } from '../members/access.ts'
import { type AuditNote, writeAudit, writeAuditOfWatching } from '../members/audit-store.ts'
import { actorOf, memberOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { hashOfToken, linkTo, newToken } from '../members/links.ts'
import { publicUrlOf } from '../members/origin.ts'
import { lockMember } from '../members/store.ts'
import { limitLinks } from '../members/tries.ts'
import { existingSession, sendEvents, sessionNotFound } from '../recordings/send-events.ts'
import { sessionEvents } from '../recordings/session-events.ts'
import { findSession } from '../recordings/session-store.ts'
import type { Sql } from '../sql.ts'
import {
  countNotes,
  deleteLink,
  deleteNote,
  findSessionLink,
  insertLink,
  insertNote,
  listLinks,
  listNotes,
  lockSession,
} from './moment-store.ts'
import { findSessionSummary } from './session-store.ts'
import { tabsOf } from './session-tabs.ts'

const notesMaximum = 500
const linksMaximum = 50

/** Notes at moments of a recording, and links to them. */
export function momentRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...listMoments,
    handler: async (request) => {
      const { projectId, params } = request
      const session = await existingSession(db.sql, projectId, params.sessionId)
      const mayShare = permissionsOf(memberOf(request)).includes('sessions.share')
      return {
        notes: await listNotes(db.sql, projectId, session.id),
        links: mayShare ? await listLinks(db.sql, projectId, session.id) : [],
      }
    },
  })

  app.route({
    ...addNote,
    handler: async (request, reply) => {
      const { projectId, params, body } = request
      const note = await db.begin(async (tx) => {
        const personId = await recordedPerson(tx, projectId, params.sessionId)
        if ((await countNotes(tx, projectId, params.sessionId)) >= notesMaximum) {
          throw invalid(
            '/body',
            `this recording already has ${notesMaximum} notes, which is the limit`,
          )
        }
        const { memberId } = memberOf(request)
        const note = await insertNote(tx, projectId, { ...params, ...body, memberId })
        await writeAudit(tx, auditOf(request, 'session.note_added', personId))
        return note
      })
      return reply.code(201).send(note)
    },
  })

  app.route({
    ...removeNote,
    handler: async (request) => {
      const { projectId, params } = request
      const member = memberOf(request)
      const memberId = permissionsOf(member).includes('members.write') ? null : member.memberId
      await db.begin(async (tx) => {
        const { personId } = await lockedSession(tx, projectId, params.sessionId)
        const id = params.noteId
        const isGone = isUuid(id) && (await deleteNote(tx, projectId, { ...params, id, memberId }))
        if (!isGone) throw new ApiError('not_found', 'No note of yours with this id.')
        await writeAudit(tx, auditOf(request, 'session.note_removed', personId))
      })
      return {}
    },
  })

  linkRoutes(app, context)
}

function linkRoutes(app: DashboardApp, { db, publicUrl }: DashboardContext): void {
  app.route({
    ...makeSessionLink,
    handler: async (request, reply) => {
      const { projectId, params, body } = request
      const { memberId } = memberOf(request)
      const { token, tokenHash } = newToken()
      const link = await db.begin(async (tx) => {
        const rights = await lockMember(tx, memberId)
        if (!rights || !permissionsOf(rights).includes('sessions.share')) {
          throw new ApiError('forbidden', 'This needs the permission sessions.share.')
        }
        const personId = await recordedPerson(tx, projectId, params.sessionId)
        if ((await listLinks(tx, projectId, params.sessionId)).length >= linksMaximum) {
          throw invalid(
            '/body',
            `this recording already has ${linksMaximum} links; revoke some first`,
          )
        }
        const made = await insertLink(tx, projectId, { ...params, ...body, memberId, tokenHash })
        const details = { link: made.id, days: body.days }
        await writeAudit(tx, auditOf(request, 'session.link_created', personId, details))
        return made
      })
      const url = linkTo(publicUrlOf(request, publicUrl), 'recording', `${projectId}.${token}`)
      return reply.code(201).send({ ...link, link: url })
    },
  })

  app.route({
    ...withdrawSessionLink,
    handler: async (request) => {
      const { projectId, params } = request
      const { sessionId, linkId } = params
      await db.begin(async (tx) => {
        const { personId } = await lockedSession(tx, projectId, sessionId)
        const isGone = isUuid(linkId) && (await deleteLink(tx, projectId, sessionId, linkId))
        if (!isGone) throw new ApiError('not_found', 'No link with this id.')
        const details = { link: linkId }
        await writeAudit(tx, auditOf(request, 'session.link_withdrawn', personId, details))
      })
      return {}
    },
  })
}

/** Shared links: they show a recording, but not whose it is. */
export function sharedRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, recordings, log } = context

  app.route({
    ...openShared,
    handler: async (request) => {
      await limitLinks(db.sql, request.ip)
      const { projectId, sessionId, at, expiresAt } = await existingLink(db.sql, request.body.token)
      const session = await findSessionSummary(db.sql, projectId, sessionId)
      if (!session) throw linkInvalid()
      return {
        at,
        startedAt: session.startedAt,
        seconds: session.seconds,
        expiresAt,
        tabs: await tabsOf(db.sql, projectId, session),
      }
    },
  })

  app.route({
    ...getSharedEvents,
    handler: async (request, reply) => {
      const { token, tab } = request.body
      const { id, projectId, sessionId } = await existingLink(db.sql, token)
      const session = await findSession(db.sql, projectId, sessionId)
      if (!session || !recordings) throw linkInvalid()
      await writeAuditOfWatching(db.sql, sessionId, {
        memberId: null,
        addressRange: addressRangeOf(request.ip),
        projectId,
        details: { link: id },
      })
      reply.type('application/x-ndjson; charset=utf-8')
      const events = sessionEvents(recordings, log, projectId, session, tab)
      return sendEvents(events, request, reply, log) as never
    },
  })
}

/** The token of a link is the project's id, a dot, and a secret. */
async function existingLink(sql: Sql, token: string) {
  const [, project = '', secret = ''] = /^([1-9]\d{0,8})\.(.+)$/.exec(token) ?? []
  const projectId = Number(project)
  const link = project && (await findSessionLink(sql, projectId, hashOfToken(secret)))
  if (!link) throw linkInvalid()
  return { ...link, projectId }
}

function linkInvalid(): ApiError {
  return new ApiError(
    'link_invalid',
    'This link expired or was revoked, or its recording was deleted.',
  )
}

/** The person of a session. Refuses a person who is being erased or was erased. */
async function recordedPerson(tx: Sql, projectId: number, sessionId: string) {
  const { isRetired, personId } = await lockedSession(tx, projectId, sessionId)
  if (!isRetired) return personId
  throw new ApiError('person_being_deleted', 'The person of this recording was or is being erased.')
}

async function lockedSession(tx: Sql, projectId: number, sessionId: string) {
  const session = isUuid(sessionId) ? await lockSession(tx, projectId, sessionId) : undefined
  if (!session) throw sessionNotFound()
  return session
}

function auditOf(
  request: FastifyRequest,
  action: AuditNote['action'],
  personId: string | null,
  details: NonNullable<AuditNote['details']> = {},
): AuditNote {
  const { projectId, params } = request
  const { sessionId: id } = params as { sessionId: string }
  const subject = { kind: 'session', id } as const
  return { ...actorOf(request), action, projectId, personId, subject, details }
}
