import { expect } from 'vitest'
import { test } from './fixtures.ts'

const long = 'x'.repeat(201)

test('a refusal says which field, in words that name no value', async ({ service }) => {
  const cases: [method: string, path: string, body: unknown, message: string, at: string][] = [
    ['POST', '/v1/persons', {}, 'externalId is required.', '/body/externalId'],
    ['POST', '/v1/persons', { externalId: 1 }, 'externalId must be a string.', '/body/externalId'],
    ['POST', '/v1/persons', { externalId: '' }, 'externalId is empty.', '/body/externalId'],
    [
      'POST',
      '/v1/persons',
      { externalId: long },
      'externalId is longer than 200 characters.',
      '/body/externalId',
    ],
    [
      'POST',
      '/v1/persons',
      { externalId: 'a', properties: [] },
      'properties must be an object.',
      '/body/properties',
    ],
    [
      'POST',
      '/v1/persons',
      { externalId: 'a', properties: { [long]: 1 } },
      'properties has a key that is empty or longer than 200 characters.',
      '/body/properties',
    ],
    [
      'POST',
      '/v1/persons',
      { externalId: 'a', Jane: 1 },
      'The body has a field that this endpoint does not know.',
      '/body',
    ],
    ['GET', '/v1/persons?limit=101', undefined, 'limit must be at most 100.', '/query/limit'],
    ['GET', '/v1/persons?limit=ten', undefined, 'limit must be an integer.', '/query/limit'],
    [
      'POST',
      '/v1/deletion-jobs',
      { externalIds: [] },
      'externalIds is an empty list.',
      '/body/externalIds',
    ],
  ]
  for (const [method, path, body, message, at] of cases) {
    const { status, json } = await service.send(path, { method, body })
    expect([status, json.error.code, json.error.message]).toEqual([400, 'invalid_request', message])
    expect(json.error.details[0].path).toBe(at)
    expect(JSON.stringify(json)).not.toMatch(/xxx|Jane/)
  }
})
