import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { ListedPerson, Person } from './store.ts'

export function sendPerson(reply: FastifyReply, person: Omit<Person, 'id'>): FastifyReply {
  return sendJson(reply, `{"person":${jsonOf(person, person.properties)}}`)
}

/**
 * Sends a page of persons. Those with large properties are read one by one as the client takes
 * them; one that was erased since the page was listed is left out.
 */
export function sendPage(
  reply: FastifyReply,
  persons: ListedPerson[],
  nextCursor: string | null,
  findLarge: (id: string) => Promise<Person | undefined>,
): FastifyReply {
  const end = `],"nextCursor":${JSON.stringify(nextCursor)}}`
  const texts = persons.map((one) => one.properties !== null && jsonOf(one, one.properties))
  if (!texts.includes(false)) return sendJson(reply, `{"persons":[${texts.join()}${end}`)
  async function* parts(): AsyncGenerator<string> {
    let separator = '{"persons":['
    for (const [place, { id }] of persons.entries()) {
      const found = texts[place] || (await findLarge(id))
      if (!found) continue
      yield separator + (typeof found === 'string' ? found : jsonOf(found, found.properties))
      separator = ','
    }
    yield separator === ',' ? end : separator + end
  }
  return sendJson(reply, Readable.from(parts(), { objectMode: false, highWaterMark: aheadBytes }))
}

/** How much of a page with large persons is read ahead of the client. */
const aheadBytes = 262_144

function jsonOf(
  { externalId, createdAt, updatedAt }: Pick<Person, 'externalId' | 'createdAt' | 'updatedAt'>,
  properties: string,
): string {
  return `{"externalId":${JSON.stringify(externalId)},"properties":${properties},"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`
}

function sendJson(reply: FastifyReply, json: string | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
