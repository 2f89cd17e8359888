import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fieldSeparator, fold } from '../src/persons/fold.ts'
import { byDepth } from './proof/deep.ts'

describe('texts that people take for the same are found by each other', () => {
  const pairs: [string, string, string][] = [
    ['a capital with an accent', 'É', 'é'],
    ['a decomposed accent', 'e\u0301', 'é'],
    ['a decomposed capital', 'E\u0301', 'é'],
    ['the dotted capital and i', 'İ', 'i'],
    ['the dotted capital and i with a dot', 'İ', 'i\u0307'],
    ['i with a dot and i', 'i\u0307', 'I'],
    ['a dotless i and its capital', 'ışıl', 'IŞIL'],
    ['sharp s and SS', 'ß', 'SS'],
    ['capital sharp s and sharp s', 'ẞ', 'ß'],
    ['capital and final sigma', 'Σ', 'ς'],
    ['capital and other sigma', 'Σ', 'σ'],
    ['Cyrillic', 'ДМИТРИЙ', 'дмитрий'],
    ['full width', 'ＡＢＣ', 'ａｂｃ'],
    ['the Kelvin sign', '\u212a', 'k'],
    ['a ligature', 'ﬁ', 'FI'],
    ['a digraph', 'Ǆ', 'ǆ'],
    ['a title-case digraph', 'ǅ', 'Ǆ'],
    ['a Roman numeral', 'Ⅷ', 'ⅷ'],
    ['a letter with an apostrophe', 'ŉ', 'ʼN'],
    ['Deseret, beyond the basic plane', '𐐀', '𐐨'],
    ['a dot between other marks', 'İ\u0323', 'ị'],
  ]

  test.each(pairs)('%s', (_, one, other) => {
    expect(fold(one)).toBe(fold(other))
  })

  test('but different letters stay different', () => {
    const letters = ['e', 'é', 'o', 'ö', 's', 'i', 'í', 'k', 'κ', 'а', 'a', 'ａ'].map(fold)
    expect(new Set(letters).size).toBe(letters.length)
  })
})

test('every character finds its capital and its small form, and folds to itself from then on', () => {
  // The planes after these have no character with another form.
  const last = byDepth(0x2ffff, 0x10ffff)
  const failed: string[] = []
  let tried = 0
  for (let code = 0; code <= last; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue
    const character = String.fromCodePoint(code)
    const folded = fold(character)
    const forms = [
      folded,
      character.toUpperCase(),
      character.toLowerCase(),
      character.normalize('NFC'),
      character.normalize('NFD'),
    ]
    const holds = folded !== '' && forms.every((form) => fold(form) === folded)
    if (!holds || folded.includes(fieldSeparator)) failed.push(code.toString(16))
    tried += 1
  }
  expect(failed).toEqual([])
  expect(tried).toBe(last + 1 - 0x800)
})

/** Characters that lower and upper case, or composition, treat unlike others. */
const awkward = [
  ...[
    'i',
    'I',
    'İ',
    'ı',
    '\u0307',
    '\u0323',
    '\u0301',
    '\u0308',
    '\u030c',
    'Σ',
    'ς',
    'σ',
    'ß',
    'ẞ',
  ],
  ...[
    'ﬁ',
    'ŉ',
    'ʼ',
    'n',
    'ΐ',
    'ǰ',
    'j',
    'K',
    'Å',
    'Ǆ',
    'ǅ',
    '𐐀',
    'ﬅ',
    'և',
    'Ⅷ',
    '\uffff',
    '\ufffe',
  ],
  ...['ﷺ', '각', 'ᄀ', 'ᅡ', 'ᆨ', '\u0f71', '\u0f72', '\u0f81', 'a', ' ', '-'],
]
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(...awkward),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    ),
    { maxLength: 8 },
  )
  // An iota below a letter is a mark, its capital a letter of its own: marks after it change place.
  .map((characters) =>
    characters
      .join('')
      .replace(/\u0345/g, '')
      .normalize('NFC'),
  )
  .filter((characters) => !characters.normalize('NFD').includes('\u0345'))

test('a text finds its capitals, its small letters and its other compositions', () => {
  fc.assert(
    fc.property(text, (sample) => {
      const folded = fold(sample)
      expect(fold(folded)).toBe(folded)
      expect(fold(sample.toUpperCase())).toBe(folded)
      expect(fold(sample.toLowerCase())).toBe(folded)
      expect(fold(sample.normalize('NFD'))).toBe(folded)
      expect(folded).not.toContain(fieldSeparator)
    }),
    { numRuns: 5_000 },
  )
})

test('a text finds its own beginning and its own end', () => {
  fc.assert(
    fc.property(text, text, (beginning, end) => {
      // Marks and Hangul letters join what is before them, and the whole is another letter then.
      fc.pre(!/^[\p{M}\u1100-\u11ff]/u.test(end.normalize('NFD')) && end === end.normalize('NFC'))
      fc.pre((beginning + end).normalize('NFC') === beginning + end)
      expect(fold(beginning + end).startsWith(fold(beginning))).toBe(true)
      expect(fold(beginning + end).endsWith(fold(end))).toBe(true)
    }),
    { numRuns: 5_000 },
  )
})
