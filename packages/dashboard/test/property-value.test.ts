import { parseExactly } from '@lethe/contract/exact-json.ts'
import { expect, test } from 'vitest'
import { kindOf, parse, textOf } from '../src/person/property-value.ts'

test.each(['12345678901234567890', '-0.10', '1e400', '0.1', '[1,{"a":9007199254740993}]'])(
  '%s is shown, edited and sent as it was written',
  (text) => {
    const value = parseExactly(text)
    expect(JSON.stringify(value)).toBe(text)
    expect(kindOf(value)).toBe(text.startsWith('[') ? 'json' : 'number')
    const edited = parse('json', textOf(value))
    expect('value' in edited && JSON.stringify(edited.value)).toBe(text)
  },
)

test('a number is refused when it is none, or too large for the API', () => {
  for (const text of ['1,5', '0x10', '', '1e400'])
    expect(parse('number', text)).toHaveProperty('error')
})
