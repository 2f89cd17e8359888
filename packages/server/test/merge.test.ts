import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { test } from './fixtures.ts'
import { byDepth } from './proof/deep.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const text = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((one) => !one.includes('\0'))

const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc
      .double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 })
      .map((one) => one + 0),
    text,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 3 }) as fc.Arbitrary<Json>,
  ),
}))

// Few keys, so that merges meet each other; the nasty ones among them.
const key = fc.constantFrom(
  'a',
  'b',
  'name',
  'email',
  '__proto__',
  'constructor',
  'toString',
  '💩',
  ' ',
)
const properties = fc
  .array(fc.tuple(key, value), { maxLength: 6 })
  .map((entries) => Object.fromEntries(entries) as Record<string, Json>)

/** The three rules of the source, and nothing else. */
function merge(stored: Map<string, Json>, sent: Record<string, Json>): Map<string, Json> {
  const merged = new Map(stored)
  for (const [name, one] of Object.entries(sent)) {
    if (one === null) merged.delete(name)
    else merged.set(name, one)
  }
  return merged
}

const plain = (one: unknown) => JSON.parse(JSON.stringify(one))

describe('the merge of properties', () => {
  test('is that of a small model, over POST and PATCH in any order', async ({ service }) => {
    let round = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.boolean(), properties), { minLength: 1, maxLength: 8 }),
        async (writes) => {
          const externalId = `model-${round++}`
          let model: Map<string, Json> | undefined
          let updatedAt = ''
          for (const [isPatch, sent] of writes) {
            const answer = isPatch
              ? await service.send(`/v1/persons/${externalId}`, {
                  method: 'PATCH',
                  body: { properties: sent },
                })
              : await service.send('/v1/persons', {
                  method: 'POST',
                  body: { externalId, properties: sent },
                })
            if (isPatch && !model) {
              expect(answer.status).toBe(404)
              continue
            }
            const before = model ? plain(Object.fromEntries(model)) : undefined
            expect(answer.status).toBe(model || isPatch ? 200 : 201)
            model = merge(model ?? new Map(), sent)
            const after = plain(Object.fromEntries(model))
            expect(answer.json.person.properties).toEqual(after)
            const isChanged =
              before === undefined ||
              JSON.stringify(sorted(before)) !== JSON.stringify(sorted(after))
            expect(answer.json.person.updatedAt !== updatedAt).toBe(isChanged)
            updatedAt = answer.json.person.updatedAt
          }
        },
      ),
      { numRuns: byDepth(40, 150) },
    )
  })

  test('any JSON value comes back as it was sent', async ({ service }) => {
    let round = 0
    await fc.assert(
      fc.asyncProperty(value, async (one) => {
        const externalId = `value-${round++}`
        const answer = await service.send('/v1/persons', {
          method: 'POST',
          body: { externalId, properties: { kept: [one] } },
        })
        expect([answer.status, answer.json.person.properties]).toEqual([
          201,
          { kept: [plain(one)] },
        ])
      }),
      { numRuns: byDepth(60, 200) },
    )
  })
})

function sorted(one: unknown): unknown {
  if (Array.isArray(one)) return one.map(sorted)
  if (typeof one !== 'object' || one === null) return one
  const entries = Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))
  return { entries: entries.map(([name, inner]) => [name, sorted(inner)]) }
}
