import { expect, test } from 'vitest'
import { shownId } from '../src/design/name.tsx'

test('no two ids look the same because of what cannot be seen in them', () => {
  const alike = [
    'ada',
    ' ada',
    'ada ',
    'ada\u00a0',
    '\ufeffada',
    'ada\u200b',
    'ada\u200d',
    'ada\ufe0f',
    'a\u00adda',
    'a\u034fda',
    'ada\u061c',
    'ada\u2060',
    '\u202eada',
    'ada\u2800',
    'ada\u3164',
    'ada\n',
    'ada\ue000',
    'ada\u{e0041}',
    'ada\\u200b',
    'ada\\u{e0041}',
    'ad\u00e4',
    'ada\u0308',
    '\u00c5',
    '\u212b',
    'K',
    '\u212a',
    '\ud55c',
    '\u1112\u1161\u11ab',
  ]
  const shown = alike.map(shownId)
  expect(new Set(shown).size).toBe(alike.length)
  for (const one of shown) expect(one).toMatch(/^[^\p{C}\p{DI}\u00a0\u2800]+$/u)
  expect(shownId('ada\u200b')).toBe('ada\\u200b')
  expect(shownId('ada\u{e0041}')).toBe('ada\\u{e0041}')
  expect(shownId(' ')).toBe('“ ”')
})

test.each([
  'ada@example.com',
  'a  b',
  'DOMAIN\\user',
  'a/b%2F?#;+',
  'عمر-١٢٣',
  '日本語',
  'Ünïcödé',
  '👩‍👩‍👧‍👦',
  '❤️',
  '1️⃣',
])('%s is shown as it is', (id) => {
  expect(shownId(id)).toBe(id)
})
