import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { isWhole, type PersonFound, type PersonListed } from './pieces.ts'

/**
 * What is larger is sent as bytes, which lie outside of the heap for as long as a slow client reads.
 * Of a page with large persons so much is read ahead of the client.
 */
const wholeBytes = 262_144

export function sendPerson(reply: FastifyReply, person: PersonFound): FastifyReply {
  const { properties } = person
  const start = `{"person":${startOf(person)}`
  const end = `${endOf(person)}}`
  if (typeof properties === 'string') return sendJson(reply, start + properties + end)
  return sendJson(reply, Buffer.concat([Buffer.from(start), ...properties, Buffer.from(end)]))
}

/**
 * Sends a page of persons; large ones are asked for one by one while it is being read, so that a
 * page of 25 MB takes no more memory than one of them.
 */
export function sendPage(
  reply: FastifyReply,
  persons: PersonListed[],
  nextCursor: string | null,
  findLarge: (id: string) => Promise<PersonFound | undefined>,
): FastifyReply {
  if (!persons.every(isWhole)) {
    const parts = pageParts(persons, nextCursor, findLarge)
    return sendJson(reply, Readable.from(parts, { objectMode: false, highWaterMark: wholeBytes }))
  }
  const texts = persons.map((one) => startOf(one) + one.properties + endOf(one))
  const page = pageStart + texts.join() + pageEnd(nextCursor)
  return sendJson(reply, page.length > wholeBytes ? Buffer.from(page) : page)
}

async function* pageParts(
  persons: PersonListed[],
  nextCursor: string | null,
  findLarge: (id: string) => Promise<PersonFound | undefined>,
): AsyncGenerator<Buffer> {
  let text = pageStart
  let isFirst = true
  for (const listed of persons) {
    const person = isWhole(listed) ? listed : await findLarge(listed.id)
    // Erased since the page was made: then nothing of it is shown.
    if (!person) continue
    text += isFirst ? startOf(person) : `,${startOf(person)}`
    isFirst = false
    if (typeof person.properties === 'string') text += person.properties + endOf(person)
    else {
      yield Buffer.from(text)
      yield* person.properties
      text = endOf(person)
    }
  }
  yield Buffer.from(text + pageEnd(nextCursor))
}

const pageStart = '{"persons":['

function pageEnd(nextCursor: string | null): string {
  return `],"nextCursor":${JSON.stringify(nextCursor)}}`
}

function startOf({ externalId }: Pick<PersonFound, 'externalId'>): string {
  return `{"externalId":${JSON.stringify(externalId)},"properties":`
}

function endOf({ createdAt, updatedAt }: Pick<PersonFound, 'createdAt' | 'updatedAt'>): string {
  return `,"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
}

function sendJson(reply: FastifyReply, json: string | Buffer | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
