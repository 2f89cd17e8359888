import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { createPerson, getPerson, listPersons, updatePerson } from '@lethe/contract/person.ts'
import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { invalid } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { type Cursors, readPage } from '../http/page.ts'
import type { Db } from '../sql.ts'
import { linesOf } from '../turns.ts'
import { sendPage, sendPerson } from './replies.ts'
import { searchPersons } from './search.ts'
import {
  externalIdOf,
  findPerson,
  findPersonInPieces,
  type ListedPerson,
  listPersons as listRows,
  type PersonWrite,
  personNotFound,
  refuseUnlessWritten,
} from './store.ts'
import { personWriter } from './writer.ts'

/** Large persons of one project that are read at a time: many pages of them are sent no faster than one. */
const largeOfProjectAtOnce = 1

type PageQuery = Static<typeof listPersons.schema.querystring>

export const personRoutes: FastifyPluginAsyncTypebox<{ db: Db; cursors: Cursors }> = async (
  app,
  { db, cursors },
) => {
  const writePerson = personWriter(db)
  const inLine = linesOf(largeOfProjectAtOnce, true)

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
      return sendPerson(reply, found)
    },
  })

  app.route({
    ...listPersons,
    handler: async ({ projectId, query }, reply) => {
      const { persons, nextCursor } = await findPage(db, cursors, projectId, query)
      const findLarge = (id: string) =>
        inLine(String(projectId), () => findPersonInPieces(db.sql, projectId, id))
      return sendPage(reply, persons, nextCursor, findLarge)
    },
  })
}

async function findPage(
  db: Db,
  cursors: Cursors,
  projectId: number,
  { limit, cursor, search = '', externalId }: PageQuery,
): Promise<{ persons: ListedPerson[]; nextCursor: string | null }> {
  for (const [name, text] of Object.entries({ search, externalId })) {
    if (!isStorable(text ?? '')) throw invalid(`/query/${name}`, 'has U+0000')
  }
  if (externalId !== undefined) {
    if (search !== '') throw invalid('/query', 'has both search and externalId')
    const person = await findPerson(db.short, projectId, externalId)
    return { persons: person ? [person] : [], nextCursor: null }
  }
  const list = ['persons', projectId, search]
  const page = { cursors, list, limit, cursor }
  const { rows, nextCursor } = await readPage(page, ['id'], (after, count) =>
    search === ''
      ? listRows(db.sql, projectId, after?.id ?? null, count)
      : searchPersons(db.sql, projectId, search, after?.id ?? null, count),
  )
  return { persons: rows, nextCursor }
}
