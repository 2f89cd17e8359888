import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  createPerson,
  deletePerson,
  getPerson,
  listPersons,
  updatePerson,
} from '@lethe/contract/person.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid } from '../api-error.ts'
import type { Cursors } from '../cursor.ts'
import { requestDeletion } from '../erasure/request.ts'
import { isStorable } from '../json-body.ts'
import type { Db } from '../sql.ts'
import { personNotFound, refuseUnlessWritten } from './refusals.ts'
import { searchPersons } from './search.ts'
import { findPerson, listPersons as listRows, type PersonRow, type PersonWrite } from './store.ts'
import { personWriter } from './writer.ts'

const externalIdMaximum = 200

/** A page above this is made and sent in parts, so that it never holds up other requests. */
const wholePageCharacters = 262_144

export const personRoutes: FastifyPluginAsyncTypebox<{ db: Db; cursors: Cursors }> = async (
  app,
  { db, cursors },
) => {
  const writePerson = personWriter(db.sql)

  async function write(writing: PersonWrite, { headers }: FastifyRequest) {
    const bodyBytes = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
    const written = await writePerson(writing, bodyBytes)
    refuseUnlessWritten(written.outcome)
    return written
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
      const { outcome, person } = await write(writing, request)
      return sendJson(reply.code(outcome === 'created' ? 201 : 200), personReply(person))
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
      const { person } = await write(writing, request)
      return sendJson(reply, personReply(person))
    },
  })

  app.route({
    ...getPerson,
    handler: async ({ projectId, params }, reply) => {
      const person = await findPerson(db.short, projectId, externalIdOf(params))
      if (!person) throw personNotFound()
      return sendJson(reply, personReply(person))
    },
  })

  app.route({
    ...listPersons,
    handler: async ({ projectId, query }, reply) => {
      const { limit, cursor, search = '', externalId } = query
      for (const name of ['search', 'externalId'] as const) {
        if (!isStorable(query[name] ?? '')) throw invalid(`/query/${name}`, 'has U+0000')
      }
      if (externalId !== undefined) {
        if (search !== '') throw invalid('/query', 'has both search and externalId')
        const person = await findPerson(db.short, projectId, externalId)
        return sendJson(reply, await pageReply(person ? [person] : [], null))
      }
      const list = ['persons', projectId, search]
      const beforeId = cursor === undefined ? null : cursors.decode(list, cursor)
      const rows =
        search === ''
          ? await listRows(db.pages, projectId, beforeId, limit + 1)
          : await searchPersons(db.sql, projectId, search, beforeId, limit + 1)
      const page = rows.slice(0, limit)
      const last = rows.length > limit ? page.at(-1) : undefined
      const nextCursor = last ? cursors.encode(list, last.id) : null
      return sendJson(reply, await pageReply(page, nextCursor))
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

/** The path's externalId. One that no person can have is nobody's, and so a 404 like any other. */
function externalIdOf({ externalId }: { externalId: string }): string {
  if (!isStorable(externalId)) throw invalid('/params/externalId', 'has U+0000')
  // Code points are at least half as many as UTF-16 units: most ids need no counting.
  const isTooLong =
    externalId.length > externalIdMaximum && [...externalId].length > externalIdMaximum
  if (externalId === '' || isTooLong) throw personNotFound()
  return externalId
}

function personJson(row: Omit<PersonRow, 'id'>): string {
  return `{"externalId":${JSON.stringify(row.externalId)},"properties":${row.properties},"createdAt":"${row.createdAt}","updatedAt":"${row.updatedAt}"}`
}

function personReply(row: Omit<PersonRow, 'id'>): string {
  return `{"person":${personJson(row)}}`
}

async function pageReply(rows: PersonRow[], nextCursor: string | null): Promise<string | Readable> {
  const end = `],"nextCursor":${JSON.stringify(nextCursor)}}`
  const characters = rows.reduce((sum, row) => sum + row.properties.length, 0)
  if (characters <= wholePageCharacters) {
    return `{"persons":[${rows.map(personJson).join()}${end}`
  }
  // As bytes, which lie outside of the heap for as long as a slow client takes to read them.
  const parts: Buffer[] = []
  for (const [at, row] of rows.entries()) {
    parts.push(Buffer.from(`${at === 0 ? '{"persons":[' : ','}${personJson(row)}`))
    if (at % 4 === 3) await setImmediate()
  }
  parts.push(Buffer.from(end))
  return Readable.from(parts, { objectMode: false, highWaterMark: wholePageCharacters })
}

function sendJson(reply: FastifyReply, json: string | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
