import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partsOf } from '../src/design/long-table.tsx'

const rowsOf = (first: number, count: number) =>
  Array.from({ length: count }, (_, place) => ({ id: String(first - place) }))

const idOf = ({ id }: { id: string }) => id

test('every row is in one part, in its order, and no two parts have the same key', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.uuid(), { maxLength: 300 }), (ids) => {
      const parts = partsOf(
        ids.map((id) => ({ id })),
        idOf,
      )
      expect(parts.flatMap(({ rows }) => rows.map(idOf))).toEqual(ids)
      expect(new Set(parts.map(({ key }) => key)).size).toBe(parts.length)
    }),
  )
})

test('rows that come on top move none that are there into another part', () => {
  const partOf = (rows: { id: string }[]) =>
    new Map(partsOf(rows, idOf).flatMap((part) => part.rows.map(({ id }) => [id, part.key])))
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 300 }),
      (more, count) => {
        const before = partOf(rowsOf(5_000, count))
        const after = partOf(rowsOf(5_000 + more, count + more))
        for (const [id, key] of before) expect(after.get(id)).toBe(key)
      },
    ),
  )
})

test('parts of a long list are few, and none is long', () => {
  const sizes = partsOf(rowsOf(100_000, 2_000), idOf).map(({ rows }) => rows.length)
  expect(sizes.length).toBeLessThan(300)
  expect(Math.max(...sizes)).toBeLessThan(100)
})
