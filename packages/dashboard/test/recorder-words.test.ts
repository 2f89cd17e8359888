import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createOutline } from '../src/replay/outline.ts'
import { recorderWords } from '../src/replay/recorder-words.ts'

function sourcesOf(folder: string): string {
  const path = join(import.meta.dirname, '../../sdk-browser/src', folder)
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(path, name), 'utf8'))
    .join('\n')
}

describe('what the recorder says of itself', () => {
  test('is listed in words: why it paused, why it stopped, how much is missing', () => {
    const outline = createOutline()
    const say = (tag: string, payload: object) =>
      outline.note(1_000, { type: 5, data: { tag, payload } }, undefined)
    say('lethe:paused', { reason: 'idle' })
    say('lethe:stopped', { reason: 'page_too_big', elements: 60_000 })
    say('lethe:dropped', { reason: 'buffer_full', events: 12 })
    expect(outline.entries.map(({ text }) => text)).toEqual([
      'Paused: no activity for five minutes',
      'Recording stopped: the page has too many elements',
      '12 events missing: offline for too long',
    ])
  })

  test('is known here whatever reason the SDK gives', () => {
    const sources = sourcesOf('.')
    const ends = [...sourcesOf('recording').matchAll(/(?:\bend|quiet\(end\))\('(\w+)'/g)].map(
      (each) => each[1],
    )
    const stops = [...sources.matchAll(/\bhopeless\('(\w+)'/g)].map((each) => each[1])
    expect(new Set([...ends, ...stops]).size).toBeGreaterThanOrEqual(4)
    for (const reason of new Set([...ends, ...stops, 'refused', 'too_big'])) {
      expect(recorderWords('lethe:stopped', { reason }), reason).toBeDefined()
    }
    const pauses = [...sources.matchAll(/\bpause\('(\w+)'/g)].map((each) => each[1])
    expect(new Set(pauses).size).toBeGreaterThanOrEqual(3)
    for (const reason of new Set(pauses)) {
      expect(recorderWords('lethe:paused', { reason }), reason).toBeDefined()
    }
    const lost = [...sources.matchAll(/\b(?:lose|lost)\([^)]*'(\w+)'\)/g)].map((each) => each[1])
    expect(new Set(lost).size).toBeGreaterThanOrEqual(3)
    for (const reason of new Set(lost)) {
      expect(recorderWords('lethe:dropped', { reason, events: 1 }), reason).toBeDefined()
    }
  })

  test('is not taken for words where a page made it up', () => {
    expect(recorderWords('constructor', { reason: 'name' })).toBeUndefined()
    expect(recorderWords('lethe:stopped', { reason: 'toString' })).toBeUndefined()
    expect(recorderWords('lethe:dropped', { reason: 'refused', events: '<b>' })).toBe(
      'Some events missing: rejected by the server',
    )
  })
})
