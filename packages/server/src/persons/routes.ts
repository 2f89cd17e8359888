import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  createPerson,
  deletePerson,
  getPerson,
  listPersons,
  updatePerson,
} from '@lethe/contract/person.ts'
import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { invalid } from '../api-error.ts'
import type { Cursors } from '../cursor.ts'
import { requestDeletion } from '../erasure/request.ts'
import { isStorable } from '../json-body.ts'
import type { Db } from '../sql.ts'
import { isWhole, type PersonListed } from './pieces.ts'
import { personNotFound, refuseUnlessWritten } from './refusals.ts'
import { sendPage, sendPerson } from './replies.ts'
import { searchPersons } from './search.ts'
import { findPerson, findWholePerson, listPersons as listRows, type PersonWrite } from './store.ts'
import { personWriter } from './writer.ts'

const externalIdMaximum = 200

type PageQuery = Static<typeof listPersons.schema.querystring>

export const personRoutes: FastifyPluginAsyncTypebox<{ db: Db; cursors: Cursors }> = async (
  app,
  { db, cursors },
) => {
  const writePerson = personWriter(db)

  function write(writing: PersonWrite, { headers }: FastifyRequest) {
    const bodyBytes = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
    return writePerson(writing, bodyBytes)
  }

  // An empty id is nobody's, whatever else is wrong with the request.
  app.addHook('preValidation', ({ params }, _reply, done) => {
    done((params as { externalId?: string }).externalId === '' ? personNotFound() : undefined)
  })

  app.route({
    ...createPerson,
    handler: async (request, reply) => {
      const { externalId, properties = {} } = request.body
      const { projectId } = request
      const writing = { projectId, externalId, properties, createMissing: true }
      const written = await write(writing, request)
      refuseUnlessWritten(written.outcome)
      return sendPerson(reply.code(written.outcome === 'created' ? 201 : 200), written)
    },
  })

  app.route({
    ...updatePerson,
    handler: async (request, reply) => {
      const { projectId, params, body } = request
      const externalId = externalIdOf(params)
      if (body.externalId !== undefined && body.externalId !== externalId) {
        throw invalid('/body/externalId', 'differs from the one in the path')
      }
      const { properties } = body
      const writing = { projectId, externalId, properties, createMissing: false }
      const written = await write(writing, request)
      refuseUnlessWritten(written.outcome)
      return sendPerson(reply, written)
    },
  })

  app.route({
    ...getPerson,
    handler: async ({ projectId, params }, reply) => {
      const found = await findPerson(db.short, projectId, externalIdOf(params))
      if (!found) throw personNotFound()
      if (isWhole(found)) return sendPerson(reply, found)
      const person = await findWholePerson(db.pages, projectId, found.id)
      if (!person) throw personNotFound()
      return sendPerson(reply, person)
    },
  })

  app.route({
    ...listPersons,
    handler: async ({ projectId, query }, reply) => {
      const { persons, nextCursor } = await readPage(db, cursors, projectId, query)
      const findLarge = (id: string) => findWholePerson(db.pages, projectId, id)
      return sendPage(reply, persons, nextCursor, findLarge)
    },
  })

  app.route({
    ...deletePerson,
    handler: async ({ projectId, keyId, params, query }, reply) => {
      const job = await requestDeletion(db, {
        projectId,
        externalId: externalIdOf(params),
        keepRecordings: query.keepRecordings,
        requestedBy: `key:${keyId}`,
      })
      return reply.code(202).send({ job })
    },
  })
}

async function readPage(
  db: Db,
  cursors: Cursors,
  projectId: number,
  { limit, cursor, search = '', externalId }: PageQuery,
): Promise<{ persons: PersonListed[]; nextCursor: string | null }> {
  for (const [name, text] of Object.entries({ search, externalId })) {
    if (!isStorable(text ?? '')) throw invalid(`/query/${name}`, 'has U+0000')
  }
  if (externalId !== undefined) {
    if (search !== '') throw invalid('/query', 'has both search and externalId')
    const person = await findPerson(db.short, projectId, externalId)
    return { persons: person ? [person] : [], nextCursor: null }
  }
  const list = ['persons', projectId, search]
  const beforeId = cursor === undefined ? null : cursors.decode(list, cursor)
  const rows =
    search === ''
      ? await listRows(db.pages, projectId, beforeId, limit + 1)
      : await searchPersons(db.sql, projectId, search, beforeId, limit + 1)
  const persons = rows.slice(0, limit)
  const last = rows.length > limit ? persons.at(-1) : undefined
  return { persons, nextCursor: last ? cursors.encode(list, last.id) : null }
}

/** The path's externalId. One that no person can have is nobody's, and so a 404 like any other. */
function externalIdOf({ externalId }: { externalId: string }): string {
  if (!isStorable(externalId)) throw invalid('/params/externalId', 'has U+0000')
  // Code points are at least half as many as UTF-16 units: most ids need no counting.
  const isTooLong =
    externalId.length > externalIdMaximum && [...externalId].length > externalIdMaximum
  if (externalId === '' || isTooLong) throw personNotFound()
  return externalId
}
