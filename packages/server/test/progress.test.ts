import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, inject } from 'vitest'
import { connectOne } from '../src/sql.ts'
import { test } from './fixtures.ts'
import { newEnvironment, runLethe } from './lethe-process.ts'

const run = promisify(execFile)
const limit = { timeout: 120_000 }

describe('a command that takes longer than two seconds', () => {
  test(
    'shows on a terminal what it does, and takes it away at its end',
    limit,
    async ({ address }) => {
      const env = await newEnvironment(address)
      const lock = await holdMigrations(address)
      const command = `${process.execPath} ${inject('command')} migrate`
      // `script` gives it a terminal.
      const running = run('script', ['--quiet', '--command', command, '/dev/null'], { env })
      await lock.forSeconds(5)
      const { stdout } = await running
      const shown = stdout.replaceAll('\r\x1b[K', '<clear>')
      expect(shown).toMatch(/<clear>Migrating the database… \(\d+ s\)/)
      expect(shown).toMatch(/<clear>The database \(PostgreSQL [\d.]+\) is up to date\.\r\n$/)
    },
  )

  test(
    'says so in lines of JSON with --json, and elsewhere not at all',
    limit,
    async ({ address }) => {
      const env = await newEnvironment(address)
      for (const words of [['migrate', '--json'], ['migrate']]) {
        const lock = await holdMigrations(address)
        const running = runLethe(words, env)
        await lock.forSeconds(5)
        const { out, err } = await running
        expect(err).toBe('')
        const lines = out.trim().split('\n')
        if (words.length === 1) expect(lines).toEqual([expect.stringMatching(/is up to date/)])
        else {
          const shown = lines.map((line) => JSON.parse(line))
          expect(shown.at(-1)).toMatchObject({ isUpToDate: true })
          expect(shown.length).toBeGreaterThan(1)
          for (const one of shown.slice(0, -1)) {
            expect(one).toEqual({
              progress: { step: 'Migrating the database' },
              seconds: expect.any(Number),
            })
          }
        }
      }
    },
  )
})

/** As another process that migrates does. */
async function holdMigrations(address: Parameters<typeof connectOne>[0]) {
  const { client, end } = await connectOne(address)
  await client.query('begin')
  await client.query('select pg_advisory_xact_lock(7105101)')
  return {
    async forSeconds(seconds: number) {
      await client.query(`select pg_sleep(${seconds})`)
      await end()
    },
  }
}
