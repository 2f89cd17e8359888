/**
 * The floor of the person API: a bare Fastify that runs the same statements with the same driver and
 * builds the same JSON, without keys, validation, limits, metrics or logs.
 */
import Fastify from 'fastify'
import pg from 'pg'

const [, , connectionString = '', projectId = '1'] = process.argv
const client = new pg.Client({ connectionString, pipeline: true } as pg.ClientConfig)
await client.connect()
const app = Fastify({ routerOptions: { maxParamLength: 2_400 } })

interface Row {
  external_id: string
  properties: string
  created_at: Date
  updated_at: Date
}

const personJson = (row: Row) =>
  `{"externalId":${JSON.stringify(row.external_id)},"properties":${row.properties},"createdAt":"${row.created_at.toISOString()}","updatedAt":"${row.updated_at.toISOString()}"}`

app.get<{ Params: { id: string } }>('/v1/persons/:id', async (request, reply) => {
  const { rows } = await client.query<Row>({
    name: 'one',
    text: `select id, external_id, properties::text as properties, created_at, updated_at
           from persons where project_id = $1 and external_id = $2`,
    values: [projectId, request.params.id],
  })
  reply.type('application/json; charset=utf-8')
  return `{"person":${personJson(rows[0] as Row)}}`
})

app.get('/v1/persons', async (_request, reply) => {
  const { rows } = await client.query<Row>({
    name: 'list',
    text: `select id, external_id, properties::text as properties, created_at, updated_at
           from persons where project_id = $1 and id < 9223372036854775807
           order by id desc limit 51`,
    values: [projectId],
  })
  reply.type('application/json; charset=utf-8')
  return `{"persons":[${rows.slice(0, 50).map(personJson).join()}],"nextCursor":"x"}`
})

process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
