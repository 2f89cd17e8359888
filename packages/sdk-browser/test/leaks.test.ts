import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RecordedEvents, RecordedTag } from '@lethe/contract/recorded-events.ts'
import type { eventWithTime } from '@rrweb/types'
import { expect, test } from 'vitest'
import { createMasker } from '../src/masking/masker.ts'
import { maskSignal } from '../src/more/mask.ts'
import { input, meta, mutation, page, type Sketch } from './events.ts'

/*
 * One table of where text of a page can be, and under which preset it leaves the browser: printed
 * here, and the same in docs/recordings.md.
 */

const canary = 'canary471188'
const jwt = `eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnk0NzExODgiOjF9.${canary}`
const presets = ['open', 'balanced', 'strict'] as const

/** A field with something after it, so that what is typed has a node to be typed into. */
const typed = (tag: string, attributes: Record<string, string>) => {
  const made = page([tag, { 'data-here': '', ...attributes }])
  return [made.snapshot, input(made.idOf('data-here'), canary)]
}
const built = (...sketches: Sketch[]) => [page(...sketches).snapshot]

const kinds: Record<string, eventWithTime[]> = {
  'text of the page': built(['p', {}, canary]),
  'text in a button or a link': built(['button', {}, canary]),
  'text typed into a field': typed('input', { type: 'text' }),
  'a password': typed('input', { type: 'password' }),
  'the value of a hidden field': built(['input', { type: 'hidden', value: canary }]),
  'a card number’s or one-time code’s field': typed('input', { autocomplete: 'cc-number' }),
  'text in a textarea': typed('textarea', {}),
  'editable text (`contenteditable`)': built(['div', { contenteditable: '' }, canary]),
  'an option of a select': built(['select', {}, ['option', {}, canary]]),
  'a label inside a form': built(['form', {}, ['label', {}, canary]]),
  'a placeholder': built(['input', { placeholder: canary }]),
  '`title`, `alt`, `aria-label`': built(['img', { alt: canary, title: canary }]),
  '`data-*` that no style sheet selects by': built(['p', { 'data-user': canary }]),
  'an attribute nobody knows': built(['my-part', { 'made-up': canary }]),
  'an email address in text': built(['p', {}, `mail ${canary}@example.com now`]),
  'a card number in text': built(['p', {}, '4111 1111 1111 1111']),
  'a phone number in text': built(['p', {}, 'call +49 30 1234567']),
  'the query of a URL': built(['a', { href: `/p?q=${canary}` }]),
  'the fragment of a URL': built(['a', { href: `/p#${canary}` }]),
  'a token in the path of a URL': built(['a', { href: `/reset/${jwt}` }]),
  'the query of the page’s own address': [meta(`https://shop.example/p?q=${canary}`)],
  'an address in a style sheet, with a query': built([
    'style',
    {},
    `p { background: url(/b.png?q=${canary}) }`,
  ]),
  'text that a style sheet prints': built(['style', {}, `p::after { content: "${canary}" }`]),
  'a comment, or a script': built(['script', {}, canary]),
  'inside `data-lethe-mask`': built(['p', { 'data-lethe-mask': '' }, canary]),
  'inside `data-lethe-block`': built(['div', { 'data-lethe-block': '' }, ['p', {}, canary]]),
  'a change of text later': (() => {
    const made = page(['p', { id: 'later' }, 'before'])
    const text = { id: made.idOf('id', 'text'), value: canary }
    return [made.snapshot, mutation({ texts: [text] })]
  })(),
  'an event that the recorder does not know': [
    { type: 5, data: { tag: 'theirs', payload: { canary } }, timestamp: 1 },
  ],
}

/** What is recorded beside the page where it asks for it; `typed` stood in a field before. */
type Told = [tag: RecordedTag, payload: RecordedEvents[RecordedTag]]

const error = (message: string): Told => ['lethe.error', { message }]
const printed = (text: string): Told => ['lethe.console', { level: 'error', text }]
const request = (url: string, more: object = {}): Told => [
  'lethe.request',
  { method: 'GET', url, status: 500, milliseconds: 5, ...more },
]
const typedBefore = 'Jane canary471188'

const signals: Record<string, Told> = {
  'the kind of an error': error('Uncaught Canary471188Error: x'),
  'the text of an error': error(`TypeError: ${canary} is no function`),
  'the text of an error: what was typed into a field': error(`no cart of ${typedBefore}`),
  'the text of an error: an email address, a card or phone number': error(
    `no ${canary}@example.com, 4111 1111 1111 1111, +49 30 1234567`,
  ),
  'the text of an error: a token': error(`bad token ${jwt}`),
  'the text of an error: the query of a URL in it': error(`GET https://a.example/x?q=${canary}`),
  'where an error was: names of functions': [
    'lethe.error',
    { message: 'x', stack: `E: x\n    at ${canary} (https://a.example/app.js:1:2)` },
  ],
  'where an error was: its script’s query': [
    'lethe.error',
    { message: 'x', source: `https://a.example/app.js?q=${canary}:1:2` },
  ],
  'text of `console.error` and `console.warn`': printed(`failed for ${canary}`),
  'text of `console.error`: what was typed into a field': printed(`failed for ${typedBefore}`),
  'the path of a request': request(`https://a.example/${canary}`),
  'a token in the path of a request': request(`https://a.example/${jwt}`),
  'the query and fragment of a request': request(`https://a.example/?q=${canary}#${canary}`),
  'the body and headers of a request': request('/x', { body: canary, headers: canary }),
  'a click: anything but which element': [
    'lethe.click',
    { kind: 'rage', id: 7, label: canary } as never,
  ],
  'web vitals: anything but numbers': [
    'lethe.vital',
    { name: 'LCP', value: 1, element: canary } as never,
  ],
}

const leak = /canary471188|4111 1111|1234567/i

const row = (kind: string, sent: (preset: (typeof presets)[number]) => unknown) =>
  `| ${[kind, ...presets.map((each) => (leak.test(JSON.stringify(sent(each))) ? 'sent' : '–'))].join(' | ')} |`

const tableOf = (rows: string[]) =>
  [`| | ${presets.join(' | ')} |`, '| --- | --- | --- | --- |', ...rows].join('\n')

const docs = readFileSync(join(import.meta.dirname, '../../../docs/recordings.md'), 'utf8')

test('what leaves the browser is the table in docs/recordings.md', () => {
  const rows = Object.entries(kinds).map(([kind, events]) =>
    row(kind, (preset) => events.map(createMasker({ preset, unmask: false }))),
  )
  expect(docs).toContain(tableOf(rows))
})

test('so it is of what broke', () => {
  const rows = Object.entries(signals).map(([kind, [tag, payload]]) =>
    row(kind, (preset) => maskSignal(tag, payload, preset, [typedBefore])),
  )
  expect(docs).toContain(tableOf(rows))
})
