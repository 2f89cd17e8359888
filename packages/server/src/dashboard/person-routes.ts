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
import { isStorable } from '../http/body.ts'
import { readPage } from '../http/page.ts'
import { isPersonId } from '../http/parameters.ts'
import { writeAudit } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { fold } from '../persons/fold.ts'
import { searchPersons } from '../persons/search.ts'
import { lockPerson, personNotFound, refuseUnlessWritten, writePerson } from '../persons/store.ts'
import { hasBrowsers } from '../recordings/identify.ts'
import type { Sql } from '../sql.ts'
import { findDeletion } from './deletion-store.ts'
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
      const page = { cursors, list, limit, cursor }
      const { rows, nextCursor } = await readPage(page, ['id'], (after, count) =>
        findIds(db.sql, projectId, { search, state }, after?.id ?? null, count),
      )
      const ids = rows.map(({ id }) => id)
      return { persons: await summarisePersons(db.sql, projectId, ids), nextCursor }
    },
  })
}

async function findIds(
  sql: Sql,
  projectId: number,
  { search, state }: { search: string; state: 'all' | Exclude<PersonState, 'present'> },
  beforeId: string | null,
  limit: number,
): Promise<{ id: string }[]> {
  if (state !== 'all') {
    return listPersonsByState(sql, projectId, state, fold(search), beforeId, limit)
  }
  if (search === '') return listPersonIds(sql, projectId, beforeId, limit)
  return searchPersons(sql, projectId, search, beforeId, limit)
}

function pageRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...getPerson,
    handler: async ({ projectId, params }, reply) => {
      const id = personIdOf(params)
      const person = await personJson(db.sql, projectId, id)
      const jobId = await findJobOfPerson(db.sql, projectId, id)
      const deletion = (jobId && (await findDeletion(db.sql, projectId, jobId))) ?? null
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
      const actor = actorOf(request)
      await db.begin(async (tx) => {
        // Locked, so that a new person with the same externalId is not written instead.
        const locked = await lockPerson(tx, projectId, { personId: id })
        const facts = locked && (await findPersonFacts(tx, projectId, id))
        if (!facts) throw noSuchPerson()
        const { externalId } = facts
        const { outcome } = await writePerson(tx, projectId, externalId, body.properties, false)
        refuseUnlessWritten(outcome)
        if (outcome !== 'updated') return
        const subject = { kind: 'person', id } as const
        await writeAudit(tx, {
          ...actor,
          action: 'person.edited',
          projectId,
          personId: id,
          subject,
        })
      })
      const person = await personJson(db.sql, projectId, id)
      if (person === undefined) throw noSuchPerson()
      return sendJson(reply, `{"person":${person}}`)
    },
  })
}

function partRoutes(app: DashboardApp, { db, cursors, browsersPerPerson }: DashboardContext): void {
  app.route({
    ...listBrowsersEndpoint,
    handler: async ({ projectId, params, query }) => {
      const id = await existingPersonId(db.sql, projectId, params)
      const page = { cursors, list: ['browsers', projectId, id], ...query }
      const { rows, nextCursor } = await readPage(page, ['linkedAt', 'id'], (after, count) =>
        listPersonBrowsers(db.sql, projectId, id, after, count),
      )
      const isFull = await hasBrowsers(db.sql, projectId, id, browsersPerPerson)
      return { browsers: rows, nextCursor, limitReached: isFull ? browsersPerPerson : null }
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

/** The person's id in the path. */
function personIdOf({ personId }: { personId: string }): string {
  if (!isPersonId(personId)) throw noSuchPerson()
  return personId
}

function noSuchPerson(): ApiError {
  return new ApiError(personNotFound().code, 'No person with this id.')
}

/** A person as JSON text, with the properties exactly as they are stored. */
async function personJson(sql: Sql, projectId: number, id: string): Promise<string | undefined> {
  const [summary] = await summarisePersons(sql, projectId, [id])
  const facts = await findPersonFacts(sql, projectId, id)
  if (!summary || !facts) return undefined
  const { properties, browsers } = facts
  const rest: PersonSummary & { browsers: number } = { ...summary, browsers }
  return `${JSON.stringify(rest).slice(0, -1)},"properties":${properties}}`
}

function sendJson(reply: FastifyReply, json: string): never {
  // The contract has the type of the parsed text.
  return reply.type('application/json; charset=utf-8').send(json) as never
}
