import { expect, test } from 'vitest'
import { parseQuery } from '../src/http/query.ts'

test('of a name that a query repeats two values are read, however many there are', () => {
  expect(parseQuery('a=1&b=2&a=3&a=4&a=5')).toMatchObject({ a: ['1', '3'], b: '2' })
  expect(parseQuery('a&'.repeat(4_000))).toMatchObject({ a: ['', ''] })
})
