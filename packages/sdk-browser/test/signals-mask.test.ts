import type { RecordedEvents, RecordedTag } from '@lethe/contract/recorded-events.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { maskSignal } from '../src/more/mask.ts'

type Preset = Parameters<typeof maskSignal>[2]
const presets = ['open', 'balanced', 'strict'] as const
const hidden = ['balanced', 'strict'] as const

const message = (text: string, preset: Preset, typed: string[] = []) =>
  maskSignal('lethe.error', { message: text }, preset, typed).message

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
    .map((each) => each.join(''))
const token = hex(40).map((each) => `c0ffee${each}`)
const jwt = hex(24).map((each) => `eyJhbGciOiJIUzI1c0ffee${each}.c0ffee${each}.c0ffee${each}`)
const email = hex(6).map((each) => `c0ffee${each}@example.com`)
const card = fc
  .array(fc.integer({ min: 0, max: 9 }), { minLength: 9, maxLength: 9 })
  .map((each) => `4000123${each.join('')}`)
const typedText = hex(6).map((each) => `c0ffee ${each}`)
const query = hex(6).map((each) => `/api/x?q=c0ffee${each}&c0ffee${each}#c0ffee${each}`)
const around = fc.constantFrom('', 'TypeError: ', 'failed for ', '"', '(', '{"a":"', 'key=', '\n')
const after = fc.constantFrom('', ' again', '"', ')', '"}', ', x', '.', '\n  at f (a.js:1:2)')

/** A text as code puts it together. */
const holding = (part: fc.Arbitrary<string>) =>
  fc.tuple(around, part, after).map((each) => each.join(''))

const CANARY = /c0ffee|4000123/

/** Each kind of signal with a text in each of its fields. */
function withText(text: string): [RecordedTag, RecordedEvents[RecordedTag]][] {
  const stack = `TypeError: ${text}\n    at ${text} (https://a.example/app.js:1:2)\n    at ${text}`
  return [
    ['lethe.error', { message: text, source: `${text}:1:2`, stack }],
    ['lethe.console', { level: 'error', text }],
    ['lethe.request', { method: text, url: text, status: 500, milliseconds: 5 }],
  ]
}

const printed = (text: string, preset: Preset, typed: string[]) =>
  JSON.stringify(withText(text).map(([tag, each]) => maskSignal(tag, each, preset, typed)))

describe.for(presets)('signals under %s', (preset) => {
  test('hold nothing that gives access', () => {
    fc.assert(
      fc.property(holding(fc.oneof(token, jwt)), (text) => {
        expect(printed(text, preset, [])).not.toMatch(CANARY)
      }),
      { numRuns: 500 },
    )
  })

  test('hold nothing that was typed', () => {
    fc.assert(
      fc.property(typedText, around, after, (typed, before, behind) => {
        expect(printed(`${before}${typed}${behind}`, preset, [typed])).not.toMatch(CANARY)
      }),
      { numRuns: 300 },
    )
  })
})

describe.for(hidden)('signals under %s', (preset) => {
  test('hold no address, card, or value of a query', () => {
    fc.assert(
      fc.property(holding(fc.oneof(email, card, query)), (text) => {
        expect(printed(text, preset, [])).not.toMatch(CANARY)
      }),
      { numRuns: 500 },
    )
  })

  test('are cut nowhere an address would be told no more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 9_900, max: 10_100 }), email, (length, canary) => {
        expect(printed(`${'x '.repeat(length / 2)}${canary}`, preset, [])).not.toMatch(CANARY)
      }),
    )
  })
})

test('strict shows no word of a text but the kind of an error', () => {
  expect(message('Uncaught TypeError: Jane is no function', 'strict')).toBe(
    'Uncaught TypeError: **** ** ** ********',
  )
  expect(message('Jane: not found', 'strict')).toBe('***** *** *****')
  const stack =
    'E: Jane\n    at Jane.call (https://a.example/app.js?v=3:10:5)\n    at Jane (native)'
  expect(maskSignal('lethe.error', { message: '', stack }, 'strict', []).stack).toBe(
    '    at https://a.example/app.js?v=*:10:5',
  )
})

test('what helps to mend it stays', () => {
  const text = "Cannot read properties of undefined (reading 'price') in cart/total.ts"
  for (const preset of ['open', 'balanced'] as const) expect(message(text, preset)).toBe(text)
  const stack = 'TypeError: x\n    at total (https://a.example/static/main.4f3a9c1b.js:10:5)'
  expect(maskSignal('lethe.error', { message: '', stack }, 'balanced', []).stack).toBe(
    '    at total (https://a.example/static/main.4f3a9c1b.js:10:5)',
  )
  const request = { method: 'POST', url: 'https://a.example/api/cart?id=7', status: 500 }
  const masked = maskSignal('lethe.request', { ...request, milliseconds: 12 }, 'balanced', [])
  expect(masked).toEqual({
    ...request,
    url: 'https://a.example/api/cart?id=*',
    milliseconds: 12,
  })
})

test('a field that the contract does not name goes', () => {
  const more = { message: 'x', body: 'c0ffee', headers: 'c0ffee' }
  expect(maskSignal('lethe.error', more, 'open', [])).toEqual({ message: 'x' })
})

test('no text makes it slow', () => {
  const texts = ['?', 'https://', 'a?b', '4 ', '@', 'eyJ', '"', 'x'.repeat(40)].map((each) =>
    each.repeat(1_000_000 / each.length),
  )
  const from = performance.now()
  for (const text of texts) for (const preset of presets) printed(text, preset, ['xxx'])
  expect(performance.now() - from).toBeLessThan(5_000)
})
