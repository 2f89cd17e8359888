import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readConfig, settings, settingsTable } from '../src/config.ts'

describe('the settings', () => {
  test('all have defaults that can be used', () => {
    expect(readConfig({})).toMatchObject({
      HOST: '127.0.0.1',
      PORT: 3000,
      DATA_DIR: './data',
      DATABASE_URL: '',
    })
    expect(Object.keys(readConfig({}))).toEqual(Object.keys(settings))
  })

  test('an empty one is the default', () => {
    expect(readConfig({ PORT: '', LOG_LEVEL: '' })).toMatchObject({ PORT: 3000, LOG_LEVEL: 'info' })
  })

  for (const [name, value, words] of [
    ['PORT', 'http', 'a whole number from 0 to 65535'],
    ['PORT', '70000', 'a whole number from 0 to 65535'],
    ['PORT', '3000.5', 'a whole number from 0 to 65535'],
    ['HOST', 'a b', 'an address or a host name'],
    ['DATABASE_URL', 'mysql://root:hunter2@db', 'postgres://'],
    ['LOG_LEVEL', 'loud', 'one of debug, info, warn, error'],
    ['RATE_LIMIT_PER_SECOND', '-1', 'a whole number from 0'],
    ['DATABASE_POOL_SIZE', '1', 'a whole number from 2'],
    ['PUBLIC_URL', 'https://lethe.example/docs', "whose path is none of Lethe's own"],
    ['PUBLIC_URL', 'https://lethe.example/a?b', 'a URL as in https://lethe.example.com'],
    ['REPLAY_URL', 'https://lethe.example/a', 'a URL without a path'],
  ] as const) {
    test(`${name}=${value} is refused in one line that names it and does not repeat it`, () => {
      let message = ''
      try {
        readConfig({ [name]: value })
      } catch (error) {
        message = (error as Error).message
      }
      expect(message).toMatch(new RegExp(`^The setting ${name} must be .*\\.$`))
      expect(message).toContain(words)
      expect(message).not.toContain('\n')
      expect(message).not.toContain('hunter2')
    })
  }

  test('a path in PUBLIC_URL is taken with or without a slash behind it', () => {
    const publicUrl = (PUBLIC_URL: string) => readConfig({ PUBLIC_URL }).PUBLIC_URL
    expect(publicUrl('https://Example.com/')).toBe('https://example.com')
    expect(publicUrl('https://example.com/lethe/')).toBe('https://example.com/lethe')
    expect(publicUrl('https://example.com/a/b.c')).toBe('https://example.com/a/b.c')
  })

  test("the README's table is theirs: `npm run generate` writes it", () => {
    const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8')
    expect(readme).toContain(settingsTable())
  })
})
