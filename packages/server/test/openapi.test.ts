import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect } from 'vitest'
import { test } from './recordings-fixtures.ts'

const committed = join(import.meta.dirname, '../../../openapi.json')

describe('openapi.json', () => {
  test('is what the service serves: `npm run generate` writes it', async ({
    ingesting: service,
  }) => {
    const { json } = await service.send('/docs/json', { key: null })
    expect(JSON.parse(readFileSync(committed, 'utf8'))).toEqual(json)
    expect(json.openapi).toMatch(/^3\.1\./)
  })

  test('every operation has an id, a summary, an error for each status, and needs a key', async ({
    ingesting: service,
  }) => {
    const { json } = await service.send('/docs/json', { key: null })
    const operations = Object.entries(json.paths).flatMap(([path, methods]) =>
      Object.entries(methods as object).map(([method, operation]) => ({ path, method, operation })),
    )
    expect(operations.map(({ path, method }) => `${method} ${path}`)).toEqual(
      expect.arrayContaining([
        'get /v1/persons/{externalId}/sessions',
        'get /v1/sessions/{id}',
        'get /v1/sessions/{id}/events',
        'get /v1/deletion-jobs',
        'post /ingest/v1/start',
        'post /ingest/v1/identify',
        'post /ingest/v1/chunks',
        'post /ingest/v1/withdraw',
      ]),
    )
    expect(json.servers).toHaveLength(1)
    const text = JSON.stringify(json.paths)
    for (const name of ['Person', 'DeletionJob', 'Session', 'Error', 'IngestError']) {
      expect(text).toContain(`{"$ref":"#/components/schemas/${name}"}`)
    }
    expect(Object.keys(json.components.schemas)).toEqual(
      expect.arrayContaining(['Person', 'DeletionJob', 'Session', 'Error']),
    )
    for (const { path, operation } of operations) {
      expect(operation.operationId).toMatch(/^[a-z]\w+$/)
      expect(operation.summary.length).toBeGreaterThan(5)
      expect(Object.keys(operation.responses)).toContain('414')
      if (operation.requestBody) {
        expect(Object.keys(operation.responses)).toEqual(
          expect.arrayContaining(['408', '413', '415']),
        )
      }
      for (const { required, schema } of operation.parameters ?? []) {
        expect(required === true && schema.default !== undefined).toBe(false)
      }
      if (path.startsWith('/v1/')) {
        expect(Object.keys(operation.responses)).toEqual(
          expect.arrayContaining(['401', '403', '500', '503']),
        )
      }
    }
  })

  test('responses match it, statuses and bodies', async ({ ingesting: service }) => {
    const { json: document } = await service.send('/docs/json', { key: null })
    const ajv = new Ajv({
      strict: false,
      allErrors: true,
      formats: { 'date-time': true, uuid: true },
    })
    const requests: [method: string, path: string, pattern: string, body?: unknown][] = [
      ['post', '/v1/persons', '/v1/persons', { externalId: 'a', properties: { x: 1 } }],
      ['post', '/v1/persons', '/v1/persons', { externalId: 'a' }],
      ['post', '/v1/persons', '/v1/persons', { externalId: '' }],
      ['get', '/v1/persons', '/v1/persons'],
      ['get', '/v1/persons?limit=x', '/v1/persons'],
      ['get', '/v1/persons/a', '/v1/persons/{externalId}'],
      ['get', '/v1/persons/b', '/v1/persons/{externalId}'],
      ['patch', '/v1/persons/a', '/v1/persons/{externalId}', { properties: {} }],
      ['patch', '/v1/persons/b', '/v1/persons/{externalId}', { properties: {} }],
      ['delete', '/v1/persons/b', '/v1/persons/{externalId}'],
      ['delete', '/v1/persons/a', '/v1/persons/{externalId}'],
      ['delete', '/v1/persons/a?keepRecordings=true', '/v1/persons/{externalId}'],
      ['post', '/v1/persons', '/v1/persons', { externalId: 'a' }],
      ['patch', '/v1/persons/a', '/v1/persons/{externalId}', { properties: {} }],
      ['get', '/v1/deletion-jobs/x', '/v1/deletion-jobs/{id}'],
    ]
    const statuses: number[] = []
    for (const [method, path, pattern, body] of requests) {
      const answer = await service.send(path, { method: method.toUpperCase(), body })
      statuses.push(answer.status)
      const declared = document.paths[pattern][method].responses[answer.status]
      expect(declared, `${method} ${path} ${answer.status}`).toBeDefined()
      const { schema } = declared.content['application/json']
      const check = ajv.compile({ ...schema, components: document.components })
      expect(check(answer.json), JSON.stringify(check.errors)).toBe(true)
    }
    expect(statuses).toEqual([
      201, 200, 400, 200, 400, 200, 404, 200, 404, 404, 202, 409, 409, 409, 404,
    ])
  })
})
