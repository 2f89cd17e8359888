import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Consent } from '../src/api.ts'
import { decideConsent } from '../src/consent.ts'
import { CHANGES, createBudget } from '../src/recording/budget.ts'
import { claimTab, releaseTab } from '../src/recording/tab.ts'
import { whyNobody } from '../src/user-id.ts'
import { fakePlatform, go } from './fake-platform.ts'

describe('consent', () => {
  const table: [asked: Consent, remembered: string | undefined, control: boolean, Consent][] = [
    ['granted', undefined, false, 'granted'],
    ['granted', 'granted', false, 'granted'],
    ['granted', 'denied', false, 'denied'],
    ['granted', undefined, true, 'denied'],
    ['granted', 'granted', true, 'denied'],
    ['pending', undefined, false, 'pending'],
    ['pending', 'granted', false, 'granted'],
    ['pending', 'denied', false, 'denied'],
    ['denied', 'granted', false, 'denied'],
  ]
  test.each(table)(
    'asked %s, remembered %s, privacy control %s: %s',
    (asked, kept, control, is) => {
      expect(decideConsent(asked, kept, control)).toBe(is)
    },
  )
})

describe('a user id', () => {
  test.each(
    'undefined NULL NaN Anonymous guest user visitor unknown none true false 0 000 -1 - n/a'
      .split(' ')
      .concat(['[object Object]', '{{user.id}}', '%ID%', '<id>', ' guest ', '{}']),
  )('is not %j, which stands for nobody', (id) => expect(whyNobody(id)).toMatch('nobody'))

  test.each(['', ' ', '\t\n'])('is not blank, as %j', (id) =>
    expect(whyNobody(id)).toMatch('nobody'),
  )

  test.each([undefined, null, true, {}, ['a']])('is text, and not %j', (id) =>
    expect(whyNobody(id)).toMatch('text'),
  )

  test('is any other text of 1 to 200 characters, whatever they are', () => {
    for (const id of ['a/b', '\u0000', '1', '10', 'user 1', 'user_id_7', '\u{1f600}'.repeat(200)]) {
      expect(whyNobody(id), id).toBeUndefined()
    }
    expect(whyNobody('x'.repeat(201))).toMatch('too long')
  })
})

describe('the number of a tab', () => {
  const browser = () => fakePlatform(() => go).platform

  test('goes on with the next page, and starts again in a duplicated tab', () => {
    const platform = browser()
    const first = claimTab(platform)
    first.number = 5
    // Duplicated while the page is there: the copy of its store holds no number.
    const copy = claimTab({ ...platform })
    expect(copy.id).not.toBe(first.id)
    releaseTab(platform, first)
    expect(claimTab(platform)).toEqual({ id: first.id, number: 5 })
  })

  test('is one the server takes, whatever chance gives', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 0.9999999, noNaN: true }), { minLength: 3 }),
        (list) => {
          let at = 0
          const random = () => list[at++ % list.length] as number
          expect(claimTab({ ...browser(), random }).id).toMatch(/^[A-Za-z0-9_-]{1,32}$/)
        },
      ),
    )
  })

  test('is not taken from something else that stands there', () => {
    for (const text of [
      '',
      'null',
      '7',
      '{"id":7}',
      '{"id":"a"}',
      '{',
      '{"id":"../..?","number":1}',
    ]) {
      const platform = browser()
      platform.tab.set('lethe.tab', text)
      expect(claimTab(platform)).toMatchObject({ number: 0 })
    }
  })
})

test('a budget is spent by a burst or a lasting flood, and not by a page that moves a little', () => {
  const burst = createBudget(CHANGES, 0)
  expect(burst.spend(50_000, 0)).toBe(true)
  expect(burst.spend(1, 0)).toBe(false)
  const busy = createBudget(CHANGES, 0)
  const flood = createBudget(CHANGES, 0)
  let spentAt = 0
  for (let second = 1; second <= 3600; second++) {
    expect(busy.spend(900, second * 1000)).toBe(true)
    if (!flood.spend(2000, second * 1000)) spentAt ||= second
  }
  expect(spentAt).toBe(50)
})
