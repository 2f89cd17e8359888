import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { ListedPerson, Person, PersonInPieces } from './store.ts'

export function sendPerson(reply: FastifyReply, person: Omit<Person, 'id'>): FastifyReply {
  const [start, end] = around(person)
  return sendJson(reply, `{"person":${start}${person.properties}${end}}`)
}

/**
 * Sends a page of persons. Those with large properties are read one by one as the client takes
 * them; one that was erased since the page was listed is left out.
 */
export function sendPage(
  reply: FastifyReply,
  persons: ListedPerson[],
  nextCursor: string | null,
  findLarge: (id: string) => Promise<PersonInPieces | undefined>,
): FastifyReply {
  const pageEnd = `],"nextCursor":${JSON.stringify(nextCursor)}}`
  const texts = persons.map((person) => {
    const [start, end] = around(person)
    return person.properties !== null && start + person.properties + end
  })
  if (!texts.includes(false)) return sendJson(reply, `{"persons":[${texts.join()}${pageEnd}`)
  async function* parts(): AsyncGenerator<string> {
    let separator = '{"persons":['
    for (const [place, { id }] of persons.entries()) {
      const found = texts[place] || (await findLarge(id))
      if (!found) continue
      if (typeof found === 'string') yield separator + found
      else {
        const [start, end] = around(found)
        yield separator + start
        yield* found.pieces
        yield end
      }
      separator = ','
    }
    yield separator === ',' ? pageEnd : separator + pageEnd
  }
  return sendJson(reply, Readable.from(parts(), { objectMode: false, highWaterMark: aheadBytes }))
}

/** How much of a page with large persons is read ahead of the client. */
const aheadBytes = 262_144

/** A person's JSON before and after the properties. */
function around({
  externalId,
  createdAt,
  updatedAt,
}: Pick<Person, 'externalId' | 'createdAt' | 'updatedAt'>): [string, string] {
  return [
    `{"externalId":${JSON.stringify(externalId)},"properties":`,
    `,"createdAt":"${createdAt}","updatedAt":"${updatedAt}"}`,
  ]
}

function sendJson(reply: FastifyReply, json: string | Readable): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(json)
}
