import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, inject } from 'vitest'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { test } from './fixtures.ts'
import { eventually, newEnvironment, runLethe, spawnLethe } from './lethe-process.ts'

const limit = { timeout: 120_000 }

describe('a command that takes longer than two seconds', () => {
  test(
    'shows on a terminal what it does, and takes it away at its end',
    limit,
    async ({ address }) => {
      const env = await newEnvironment(address)
      const release = await holdMigrations(address)
      const command = `${process.execPath} ${inject('command')} migrate`
      // `script` gives it a terminal.
      const running = spawn('script', ['--quiet', '--command', command, '/dev/null'], { env })
      const ended = once(running, 'close')
      let shown = ''
      running.stdout.on('data', (bytes) => {
        shown = (shown + bytes).replaceAll('\r\x1b[K', '<clear>')
      })
      await eventually(async () => /<clear>Migrating the database… \(\d+ s\)/.test(shown))
      await release()
      await ended
      expect(shown).toMatch(/<clear>The database \(PostgreSQL [\d.]+\) is up to date\.\r\n$/)
    },
  )

  test('says so in lines of JSON with --json', limit, async ({ address }) => {
    const release = await holdMigrations(address)
    const { child, output } = spawnLethe(['migrate', '--json'], await newEnvironment(address))
    const ended = once(child, 'close')
    await eventually(async () => output().includes('\n'))
    await release()
    await ended
    const shown = output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(shown.at(-1)).toMatchObject({ isUpToDate: true })
    expect(shown.length).toBeGreaterThan(1)
    for (const one of shown.slice(0, -1)) {
      expect(one).toEqual({
        progress: { step: 'Migrating the database' },
        seconds: expect.any(Number),
      })
    }
  })

  test('says nothing of it elsewhere', limit, async ({ address }) => {
    const release = await holdMigrations(address)
    const running = runLethe(['migrate'], await newEnvironment(address))
    await untilWaited(address, 3)
    await release()
    const { out, err } = await running
    expect([err, out]).toEqual(['', expect.stringMatching(/^[^\n]+ is up to date\.\n$/)])
  })
})

/** As another process that migrates does. Returns what ends that. */
async function holdMigrations(address: DbAddress): Promise<() => Promise<void>> {
  const { client, end } = await connectOne(address)
  await client.query('begin')
  await client.query('select pg_advisory_xact_lock(7105101)')
  return end
}

/** The command has waited so long for the other process. */
async function untilWaited(address: DbAddress, seconds: number): Promise<void> {
  const { client, end } = await connectOne(address)
  await eventually(async () => {
    const { rows } = await client.query(
      `select from pg_stat_activity where datname = current_database() and pid in
         (select pid from pg_locks where locktype = 'advisory' and not granted)
         and query_start < clock_timestamp() - make_interval(secs => $1)`,
      [seconds],
    )
    return rows.length > 0
  })
  await end()
}
