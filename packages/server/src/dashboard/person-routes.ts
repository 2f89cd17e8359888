import {
  getPerson,
  listPersonActivity as listActivityEndpoint,
  listPersonBrowsers as listBrowsersEndpoint,
  listPersons,
  type PersonState,
  type PersonSummary,
  updatePerson,
} from '@lethe/contract/dashboard-persons.ts'
import type { FastifyReply } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { attemptsMaximum } from '../erasure/attempts.ts'
import { lockPerson } from '../erasure/store.ts'
import { isStorable } from '../json-body.ts'
import { memberOf } from '../members/authenticate.ts'
import { fold } from '../persons/fold.ts'
import { personNotFound, refuseUnlessWritten } from '../persons/refusals.ts'
import { searchPersons } from '../persons/search.ts'
import { writePerson } from '../persons/store.ts'
import type { Sql } from '../sql.ts'
import { writeAudit } from './audit-store.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { findDeletion } from './deletion-store.ts'
import { isPersonId } from './person-id.ts'
import {
  findJobOfPerson,
  findPersonFacts,
  listPersonActivity,
  listPersonBrowsers,
  listPersonIds,
  listPersonsByState,
  summarisePersons,
} from './person-store.ts'

export function personRoutes(app: DashboardApp, context: DashboardContext): void {
  listRoutes(app, context)
  pageRoutes(app, context)
  partRoutes(app, context)
}

function listRoutes(app: DashboardApp, { db, cursors }: DashboardContext): void {
  app.route({
    ...listPersons,
    handler: async ({ projectId, query }) => {
      const { limit, cursor, search = '', state = 'all' } = query
      if (!isStorable(search)) throw invalid('/query/search', 'has U+0000')
      const list = ['persons of the dashboard', projectId, search, state]
      const beforeId = cursor === undefined ? null : cursors.decode(list, cursor)
      const ids = await findIds(db.sql, projectId, { search, state }, beforeId, limit + 1)
      const page = ids.slice(0, limit)
      const last = ids.length > limit ? page.at(-1) : undefined
      return {
        persons: await summarisePersons(db.sql, projectId, page),
        nextCursor: last ? cursors.encode(list, last) : null,
      }
    },
  })
}

async function findIds(
  sql: Sql,
  projectId: number,
  { search, state }: { search: string; state: 'all' | Exclude<PersonState, 'present'> },
  beforeId: string | null,
  limit: number,
): Promise<string[]> {
  if (state !== 'all') {
    return listPersonsByState(sql, projectId, state, fold(search), beforeId, limit)
  }
  if (search === '') return listPersonIds(sql, projectId, beforeId, limit)
  const rows = await searchPersons(sql, projectId, search, beforeId, limit)
  return rows.map(({ id }) => id)
}

function pageRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...getPerson,
    handler: async ({ projectId, params }, reply) => {
      const id = personIdOf(params)
      const person = await personJson(db.sql, projectId, id)
      const jobId = await findJobOfPerson(db.sql, projectId, id)
      const deletion =
        jobId === undefined
          ? null
          : ((await findDeletion(db.sql, projectId, jobId, attemptsMaximum)) ?? null)
      if (person === undefined && deletion === null) throw noSuchPerson()
      return sendJson(
        reply,
        `{"person":${person ?? 'null'},"deletion":${JSON.stringify(deletion)}}`,
      )
    },
  })

  app.route({
    ...updatePerson,
    handler: async (request, reply) => {
      const { projectId, params, body } = request
      const id = personIdOf(params)
      const { memberId } = memberOf(request)
      await db.begin(async (tx) => {
        // Locked, so that it is this person that is written and not another one after it with the
        // same externalId.
        const locked = await lockPerson(tx, projectId, { personId: id })
        const facts = locked && (await findPersonFacts(tx, projectId, id))
        if (!facts) throw noSuchPerson()
        const { externalId } = facts
        const { outcome } = await writePerson(tx, projectId, externalId, body.properties, false)
        refuseUnlessWritten(outcome)
        if (outcome !== 'updated') return
        const subject = { kind: 'person', id } as const
        await writeAudit(tx, { action: 'person.edited', memberId, projectId, subject })
      })
      const person = await personJson(db.sql, projectId, id)
      if (person === undefined) throw noSuchPerson()
      return sendJson(reply, `{"person":${person}}`)
    },
  })
}

function partRoutes(app: DashboardApp, { db, cursors }: DashboardContext): void {
  app.route({
    ...listBrowsersEndpoint,
    handler: async ({ projectId, params, query }) => {
      const id = await existingPersonId(db.sql, projectId, params)
      const list = ['browsers', projectId, id]
      const { limit, cursor } = query
      const position = cursor === undefined ? undefined : cursors.decode(list, cursor)
      const [linkedAt = '', browserId = ''] = position?.split(' ') ?? []
      const after = position === undefined ? null : { linkedAt, id: browserId }
      const rows = await listPersonBrowsers(db.sql, projectId, id, after, limit + 1)
      const browsers = rows.slice(0, limit)
      const last = rows.length > limit ? browsers.at(-1) : undefined
      const nextCursor = last ? cursors.encode(list, `${last.linkedAt} ${last.id}`) : null
      return { browsers, nextCursor }
    },
  })

  app.route({
    ...listActivityEndpoint,
    handler: async ({ projectId, params }) => {
      const id = await existingPersonId(db.sql, projectId, params)
      return { activity: await listPersonActivity(db.sql, projectId, id) }
    },
  })
}

async function existingPersonId(
  sql: Sql,
  projectId: number,
  params: { personId: string },
): Promise<string> {
  const id = personIdOf(params)
  if (!(await findPersonFacts(sql, projectId, id))) throw noSuchPerson()
  return id
}

/** The path's id of a person; what can be none is nobody's. */
function personIdOf({ personId }: { personId: string }): string {
  if (!isPersonId(personId)) throw noSuchPerson()
  return personId
}

function noSuchPerson(): ApiError {
  return new ApiError(personNotFound().code, 'No person with this id.')
}

/** A person's page as JSON text. Its properties are spliced in as they are stored, digit by digit. */
async function personJson(sql: Sql, projectId: number, id: string): Promise<string | undefined> {
  const [summary] = await summarisePersons(sql, projectId, [id])
  const facts = await findPersonFacts(sql, projectId, id)
  if (!summary || !facts) return undefined
  const { properties, browsers } = facts
  const rest: PersonSummary & { browsers: number } = { ...summary, browsers }
  return `${JSON.stringify(rest).slice(0, -1)},"properties":${properties}}`
}

function sendJson(reply: FastifyReply, json: string): never {
  // The contract's type is of what the text says.
  return reply.type('application/json; charset=utf-8').send(json) as never
}
