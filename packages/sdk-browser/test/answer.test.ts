import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backoff, readAnswer } from '../src/answer.ts'

const answer = (status: number, body: object | string, headers = {}) =>
  readAnswer(
    new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers }),
  )

describe('what the server says next', () => {
  test.each(['continue', 'retry', 'new_browser', 'stop'])('%s is followed', async (next) => {
    for (const status of [200, 400, 410, 429, 500]) {
      expect((await answer(status, { next })).next).toBe(next)
    }
  })

  test.each([
    [200, 'retry', 'a page of a hotel network is no confirmation'],
    [400, 'continue', 'sending it again would not help'],
    [401, 'stop', 'the key counts no more'],
    [403, 'stop', 'this origin may not'],
    [404, 'continue', 'sending it again would not help'],
    [408, 'retry', 'too slow'],
    [409, 'retry', 'the same chunk is in flight'],
    [410, 'new_browser', 'retired'],
    [413, 'continue', 'it stays too long'],
    [429, 'retry', 'too many'],
    [500, 'retry', 'a fault'],
    [502, 'retry', 'a proxy alone'],
    [503, 'retry', 'away'],
  ])('where it does not say, %i means %s: %s', async (status, next) => {
    expect((await answer(status, '<html>')).next).toBe(next)
    expect((await answer(status, { next: 'dance' })).next).toBe(next)
    expect((await answer(status, 'null')).next).toBe(next)
  })

  test('how long to wait is read from the body, or the header, and ends at an hour', async () => {
    expect((await answer(429, { retryAfterSeconds: 7 })).retrySeconds).toBe(7)
    expect((await answer(429, {}, { 'retry-after': '9' })).retrySeconds).toBe(9)
    expect((await answer(503, {}, { 'retry-after': 'soon' })).retrySeconds).toBe(0)
    expect((await answer(503, { retryAfterSeconds: 1e9 })).retrySeconds).toBe(3600)
  })
})

test('waits grow, are random, are never shorter than requested, and are limited', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2000 }),
      fc.integer({ min: 0, max: 3600 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (failures, asked, random) => {
        const wait = backoff(failures, asked, random)
        expect(wait).toBeGreaterThanOrEqual(Math.max(1000, asked * 1000))
        expect(wait).toBeLessThanOrEqual(Math.max(30_000, asked * 1000) + 30_000)
        if (random > 0.01) expect(wait).toBeGreaterThan(backoff(failures, asked, 0))
      },
    ),
  )
})
