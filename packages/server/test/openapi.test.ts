import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect } from 'vitest'
import { test } from './fixtures.ts'

const committed = join(import.meta.dirname, '../../../openapi.json')

describe('openapi.json', () => {
  test('is what the service serves: `npm run generate` makes it anew', async ({ service }) => {
    const { json } = await service.send('/docs/json', { key: null })
    expect(JSON.parse(readFileSync(committed, 'utf8'))).toEqual(json)
    expect(json.openapi).toMatch(/^3\.1\./)
  })

  test('every operation has an id, a summary, an error for each status, and needs a key', async ({
    service,
  }) => {
    const { json } = await service.send('/docs/json', { key: null })
    const operations = Object.entries(json.paths).flatMap(([path, methods]) =>
      Object.entries(methods as object).map(([method, operation]) => ({ path, method, operation })),
    )
    expect(operations.length).toBeGreaterThanOrEqual(6)
    for (const { path, operation } of operations) {
      expect(operation.operationId).toMatch(/^[a-z]\w+$/)
      expect(operation.summary.length).toBeGreaterThan(5)
      if (path.startsWith('/v1/')) {
        expect(Object.keys(operation.responses)).toEqual(
          expect.arrayContaining(['401', '403', '500', '503']),
        )
      }
    }
  })

  test('answers are as it says, statuses and bodies', async ({ service }) => {
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
      const check = ajv.compile(declared.content['application/json'].schema)
      expect(check(answer.json), JSON.stringify(check.errors)).toBe(true)
    }
    expect(statuses).toEqual([
      201, 200, 400, 200, 400, 200, 404, 200, 404, 404, 202, 409, 409, 409, 404,
    ])
  })
})
