import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ApiError } from '../src/api-error.ts'
import { JsonText, jsonOf, parseJsonBody } from '../src/json-body.ts'
import { readLargeJsonBody } from '../src/large-json-body.ts'

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
      const out = printed(`{"a":${space}${number}${space},"b":[${space}${number}]}`)
      const [, a, b] = /^\{"a":(.*),"b":\[(.*)\]\}$/.exec(out) ?? []
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
  expect(printed('[0e-400, 0.0e999]')).toBe('[0e-400,0.0e999]')
})

test('no JSON error repeats the text', () => {
  for (const text of ['{"secret":', 'secret', '{"a":secret}', "{'secret':1}", '{"secret"}']) {
    expect(() => parse(text)).toThrow('The body is not valid JSON.')
  }
})

test('a large body is read as a small one, on a thread of its own', async () => {
  const pad = 'x'.repeat(20_000)
  for (const text of [
    `{"externalId":"é","properties":{"pad":"${pad}","__proto__":{"a":[1,null]},"n":12345678901234567890,"z":null,"list":[1.50,{"b":12345678901234567890}],"t":true}}`,
    `["${pad}",[1,[2,{"c":null}]],{"d":{"e":1}},null,7]`,
    `"${pad}"`,
  ]) {
    const read = await readLargeJsonBody(Buffer.from(text))
    const print = (value: unknown): string =>
      value instanceof JsonText ||
      JSON.isRawJSON(value) ||
      typeof value !== 'object' ||
      value === null
        ? jsonOf(value)
        : Array.isArray(value)
          ? `[${value.map(print).join()}]`
          : `{${Object.entries(value)
              .map(([key, one]) => `${JSON.stringify(key)}:${print(one)}`)
              .join()}}`
    expect(print(read)).toBe(JSON.stringify(parse(text)))
  }
  for (const text of [
    `{"a":"${pad}"`,
    `["${pad}\\u0000"]`,
    `[${'1,'.repeat(10_001)}1]`,
    `{"a":${'['.repeat(20_000)}`,
  ]) {
    await expect(readLargeJsonBody(Buffer.from(text))).rejects.toThrow(ApiError)
  }
})

test('while the largest and densest body is read other work goes on', async () => {
  const dense = `{"externalId":"a","properties":{"n":[12345678901234567890${',1'.repeat(500_000)}]}}`
  await readLargeJsonBody(Buffer.from('[]'))
  let turns = 0
  let isDone = false
  const reading = readLargeJsonBody(Buffer.from(dense)).then(() => {
    isDone = true
  })
  while (!isDone) {
    turns++
    await new Promise((resolve) => setImmediate(resolve))
  }
  await reading
  // Read here, it would be one turn of the event loop.
  expect(turns).toBeGreaterThan(100)
})
