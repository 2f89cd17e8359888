import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { TObject, TSchema } from 'typebox'
import { describe, expect, test } from 'vitest'
import { parseJsonBody } from '../src/http/body.ts'

const parse = (text: string) => parseJsonBody(Buffer.from(text))
const printed = (text: string) => JSON.stringify(parse(text))

test('every number that is taken is printed as it was, or as a double that is equal', () => {
  const lexeme = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 0n, max: 10n ** 40n }),
      fc.option(fc.stringMatching(/^[0-9]{1,30}$/)),
      fc.option(fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.nat(200))),
    )
    .map(
      ([sign, whole, fraction, exponent]) =>
        `${sign}${whole}${fraction ? `.${fraction}` : ''}${exponent ? exponent.join('') : ''}`,
    )
  fc.assert(
    fc.property(lexeme, fc.constantFrom('', ' ', '\n'), (number, space) => {
      const out = printed(`[{"a":${space}${number}${space},"b":[${space}${number}]}]`)
      const [, a, b] = /^\[\{"a":(.*),"b":\[(.*)\]\}\]$/.exec(out) ?? []
      expect(b).toBe(a)
      // Digits may only be written otherwise where a double holds all of them.
      if (a !== number) expect(exactDecimal(a as string)).toBe(exactDecimal(number))
    }),
    { numRuns: 2_000 },
  )
})

/** A decimal as digits and exponent without the zeros that do not count. */
function exactDecimal(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const cut = digits.replace(/0+$/, '')
  if (cut === '') return '0'
  return `${sign}${cut}e${Number(exponent) - fraction.length + (digits.length - cut.length)}`
}

test('numbers within texts and keys are left alone', () => {
  const text = '{"a 12345678901234567890":"1e999, [1e999] 12345678901234567890","b":"x\\"1e999"}'
  expect(printed(text)).toBe(text)
})

test('a number outside of a double is refused wherever it stands', () => {
  for (const text of [
    '1e309',
    '-1e309',
    '[1e309]',
    '{"a":1e309}',
    '{"a" : 1E309}',
    '[0,1e-400]',
    `1${'0'.repeat(400)}`,
  ]) {
    expect(() => parse(text), text).toThrow(/number/)
  }
  expect(printed('[[0e-400, 0.0e999]]')).toBe('[[0e-400,0.0e999]]')
})

test('no JSON error repeats the text', () => {
  for (const text of ['{"secret":', 'secret', '{"a":secret}', "{'secret':1}", '{"secret"}']) {
    expect(() => parse(text)).toThrow('The body is not valid JSON.')
  }
})

test('a number keeps the zeros at the end of its fraction, whatever else is in the body', () => {
  for (const number of ['1.0', '1.10', '-0.50', '100.000']) {
    const text = `{"properties":{"a":${number},"b":[${number}]}}`
    expect(printed(text)).toBe(text)
  }
})

describe('a number is never accepted as an object', async () => {
  const endpoints = await endpointsWithBody()
  test('in any of its bodies', () => expect(endpoints.length).toBeGreaterThan(20))
  for (const { name, body } of endpoints) {
    test(name, () => {
      for (const path of placesOfObjects(body)) {
        for (const number of ['1', '-0', '1.10', '1.0e0', '12345678901234567890']) {
          const text = path.reduceRight((inner, one) => `{"${one}":${inner}}`, number)
          const value = path.reduce((outer, one) => (outer as never)[one], parse(text))
          expect(value, text).toBe(Number(number))
        }
      }
    })
  }
})

/** The endpoints of the contract that take a JSON body. */
async function endpointsWithBody(): Promise<{ name: string; body: TObject }[]> {
  const folder = join(import.meta.dirname, '../../contract/src')
  const modules = await Promise.all(
    readdirSync(folder).map(async (file) => ({ file, exports: await import(join(folder, file)) })),
  )
  return modules.flatMap(({ file, exports }) =>
    Object.entries(exports).flatMap(([name, value]) => {
      const body = (value as { schema?: { body?: TObject } } | undefined)?.schema?.body
      return body?.type === 'object' ? [{ name: `${name} of ${file}`, body }] : []
    }),
  )
}

/** The paths of what a schema has as an object or list, the body itself first. */
function placesOfObjects(schema: TSchema, path: string[] = []): string[][] {
  const { type, properties = {} } = schema as { type?: string; properties?: object }
  if (type !== 'object') return []
  const below = Object.entries(properties).flatMap(([name, one]) =>
    placesOfObjects(one, [...path, name]),
  )
  return [path, ...below]
}

test('half a million levels are refused without being parsed, and brackets in strings do not count', () => {
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  const millisecondsOf = (work: () => void) => {
    const begun = performance.now()
    work()
    return performance.now() - begun
  }
  const refusing = millisecondsOf(() => expect(() => parse(deep)).toThrow())
  expect(refusing).toBeLessThan(millisecondsOf(() => JSON.parse(deep)) / 2)
  const text = `{"a":"${'[{'.repeat(100)}\\\\","b":"\\"${'['.repeat(30)}"}`
  expect(parse(text)).toEqual(JSON.parse(text))
})
