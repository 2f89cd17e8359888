import { Readable } from 'node:stream'
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
import type { PersonFound } from './pieces.ts'
import { personNotFound, refuseUnlessWritten } from './refusals.ts'
import { searchPersons } from './search.ts'
import { findPerson, listPersons as listRows, type PersonWrite } from './store.ts'
import { personWriter } from './writer.ts'

const externalIdMaximum = 200

/**
 * What is larger is sent as bytes, which lie outside of the heap for as long as a slow client reads,
 * and what is more than twice as large in parts.
 */
const wholeBytes = 262_144

export const personRoutes: FastifyPluginAsyncTypebox<{ db: Db; cursors: Cursors }> = async (
  app,
  { db, cursors },
) => {
  const writePerson = personWriter(db)

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
        return sendJson(reply, pageReply(person ? [person] : [], null))
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
      return sendJson(reply, pageReply(page, nextCursor))
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

/** The JSON of an answer in pieces, those that are large as bytes. */
type Pieces = (string | Buffer)[]

function personJson({ externalId, properties, createdAt, updatedAt }: PersonFound) {
  const start = `{"externalId":${JSON.stringify(externalId)},"properties":`
  const end = `,"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
  return typeof properties === 'string' ? `${start}${properties}${end}` : [start, properties, end]
}

function personReply(row: PersonFound): string | Pieces {
  const person = personJson(row)
  return typeof person === 'string' ? `{"person":${person}}` : ['{"person":', ...person, '}']
}

function pageReply(rows: PersonFound[], nextCursor: string | null): string | Pieces {
  const persons = rows.map(personJson)
  const end = `],"nextCursor":${JSON.stringify(nextCursor)}}`
  if (persons.every((one) => typeof one === 'string')) {
    return `{"persons":[${persons.join()}${end}`
  }
  return [
    '{"persons":[',
    ...persons.flatMap((one, at) => (at === 0 ? one : [',', one].flat())),
    end,
  ]
}

function sendJson(reply: FastifyReply, json: string | Pieces): FastifyReply {
  reply.type('application/json; charset=utf-8')
  if (typeof json !== 'string') return reply.send(bytesOf(json))
  return reply.send(json.length > wholeBytes ? Buffer.from(json) : json)
}

/** The bytes of pieces; where they are many, as a stream that copies none of the large ones. */
function bytesOf(pieces: Pieces): Buffer | Readable {
  const parts: Buffer[] = []
  let text = ''
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece
    else {
      parts.push(Buffer.from(text), piece)
      text = ''
    }
  }
  parts.push(Buffer.from(text))
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  if (length <= 2 * wholeBytes) return Buffer.concat(parts, length)
  return Readable.from(parts, { objectMode: false, highWaterMark: wholeBytes })
}
