import { randomUUID } from 'node:crypto'
import { describe, expect } from 'vitest'
import { readProjectSummary } from '../src/dashboard/project-store.ts'
import { createMetrics } from '../src/metrics.ts'
import { newKeyText } from '../src/projects/key-text.ts'
import { tokenBuckets } from '../src/projects/rate-limit.ts'
import { openQuotas } from '../src/recordings/quotas.ts'
import { newProject, sendRaw, startService } from './fixtures.ts'
import { plainEvents, shiftClock, startIngesting, test } from './recordings-fixtures.ts'

const unlimited = { perAddress: 0, perProject: 0 }
const chunk = plainEvents(20)

describe('the bytes of a day', () => {
  test('of a project are limited over all processes, and the dashboard and a metric show it', async ({
    recordings,
    address,
    project,
    db,
  }) => {
    const other = await newProject(db)
    const ingestLimits = { ...unlimited, bytesPerProject: chunk.length * 3 }
    const first = await startIngesting(recordings, address, project, { ingestLimits })
    const place = await first.start()
    for (let number = 0; number < 2; number++) {
      expect((await first.chunk({ ...place, number }, chunk)).status).toBe(200)
    }
    await first.close()

    const metrics = createMetrics()
    const second = await startIngesting(recordings, address, project, { ingestLimits, metrics })
    let number = 2
    await expect
      .poll(async () => (await second.chunk({ ...place, number: number++ }, chunk)).status, {
        timeout: 30_000,
        interval: 1_000,
      })
      .toBe(429)
    const refused = await second.ingest('start', {})
    expect([refused.status, refused.json.error.code, refused.json.next]).toEqual([
      429,
      'rate_limited',
      'stop',
    ])
    expect((await second.ingest('start', {}, { key: other.publicKey })).status).toBe(200)
    expect(await metrics.registry.metrics()).toMatch(
      /lethe_ingest_refused_total\{limit="bytes_per_project"\} [1-9]/,
    )
    expect(second.logged().split('ingest.day_is_full').length - 1).toBe(1)
    await second.close()
    const summary = await readProjectSummary(db.sql, project.id)
    expect(summary.recordedBytesToday).toBeGreaterThanOrEqual(chunk.length * 3)
    expect(summary.recordingsRefusedToday).toBeGreaterThanOrEqual(2)
  })

  test('of a project are those that were stored: nobody fills it with what is refused', async ({
    recordings,
    address,
    project,
    db,
  }) => {
    const service = await startIngesting(recordings, address, project, {
      ingestLimits: { ...unlimited, bytesPerProject: chunk.length * 2 },
    })
    const place = await service.start()
    const damaged = `${chunk}}`
    for (let number = 0; number < 3; number++) {
      expect((await service.chunk({ ...place, number }, damaged)).status).toBe(400)
      const nowhere = { ...place, browserId: randomUUID(), number }
      expect((await service.chunk(nowhere, chunk)).status).toBe(410)
    }
    const statuses = []
    for (let number = 0; number < 3; number++) {
      statuses.push((await service.chunk({ ...place, number }, chunk)).status)
    }
    expect(statuses).toEqual([200, 200, 429])
    await service.close()
    const summary = await readProjectSummary(db.sql, project.id)
    expect(summary.recordedBytesToday).toBe(chunk.length * 2)
  })

  test('of a project are limited while they are being added up, too', async ({ project, db }) => {
    const limits = { bytesPerProject: 100, bytesPerAddress: 0 }
    const quotas = openQuotas(db.sql, limits, (exceeded) => new Error(exceeded))
    quotas.countStored(project.id, 60)
    await quotas.flush()
    quotas.countStored(project.id, 60)
    let flushed: Promise<void> | undefined
    await db.begin(async (tx) => {
      await tx`select from ingest_usage where project_id = ${project.id} for update`
      flushed = quotas.flush()
      await expect
        .poll(
          () => db.sql`
            select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`,
        )
        .toHaveLength(1)
      expect(() => quotas.admit(project.id, '10.0.0.1')).toThrow('bytes_per_project')
    })
    await flushed
    expect(() => quotas.admit(project.id, '10.0.0.1')).toThrow('bytes_per_project')
  })

  test('of an address are limited, without affecting another address', async ({
    recordings,
    address,
    project,
  }) => {
    const service = await startIngesting(recordings, address, project, {
      ingestLimits: { ...unlimited, bytesPerAddress: chunk.length },
      trustProxy: 1,
    })
    const place = await service.start()
    const send = (from: string, number: number) =>
      service.ingest('chunks', chunk, {
        query: { browser: place.browserId, session: place.sessionId, tab: 't', number },
        headers: { 'x-forwarded-for': from },
      })
    expect((await send('10.0.0.1', 0)).status).toBe(200)
    expect((await send('10.0.0.1', 1)).json).toMatchObject({ next: 'stop' })
    expect((await send('10.0.0.2', 1)).status).toBe(200)
    await service.close()
  })
})

test('the sessions a browser can start in a day are limited, and start from zero the next day', async ({
  recordings,
  address,
  project,
}) => {
  const service = await startIngesting(recordings, address, project, {
    ingestLimits: { ...unlimited, sessionsPerBrowser: 3 },
  })
  const { browserId } = await service.start()
  const again = () => service.ingest('start', { browserId })
  expect([(await again()).status, (await again()).status]).toEqual([200, 200])
  const refused = await again()
  expect([refused.status, refused.json.next]).toEqual([429, 'stop'])
  expect((await service.ingest('start', {})).status).toBe(200)
  await shiftClock(address, 86_401)
  expect((await again()).status).toBe(200)
  await shiftClock(address, 0)
  await service.close()
})

test('lookups of keys that never worked are limited, without affecting valid keys from the same address', async ({
  recordings,
  address,
  project,
}) => {
  const service = await startIngesting(recordings, address, project, {
    unknownKeysPerSecond: 1,
    trustProxy: 1,
  })
  const from = (last: number) => ({ 'x-forwarded-for': `10.0.0.${last}` })
  const call = (key: string, last: number) =>
    sendRaw(service.url, '/v1/persons', key, { headers: from(last) })
  const start = (key: string, last: number) =>
    service.ingest('start', {}, { key, headers: from(last) })
  expect((await call(project.secretKey, 1)).status).toBe(200)
  expect((await start(project.publicKey, 1)).status).toBe(200)
  const guesses: number[] = []
  for (let i = 0; i < 15; i++) {
    guesses.push((await call(newKeyText('secret'), 1)).status)
    guesses.push((await start(newKeyText('public'), 1)).status)
  }
  expect(new Set(guesses)).toEqual(new Set([401, 429]))
  // Longer than a key is trusted without a look at the database.
  await new Promise((resolve) => setTimeout(resolve, 3_100))
  for (let i = 0; i < 15; i++) await call(newKeyText('secret'), 1)
  expect((await call(project.secretKey, 1)).status).toBe(200)
  expect((await start(project.publicKey, 1)).status).toBe(200)
  expect((await call(newKeyText('secret'), 2)).status).toBe(401)
  await service.close()
})

test.for([['sk_guess'], ['no text of a key'], [null]] as const)(
  'requests with malformed keys are limited too: %s',
  async ([text], { recordings, address, project }) => {
    const service = await startIngesting(recordings, address, project, { unknownKeysPerSecond: 1 })
    const seen: number[] = []
    for (let i = 0; i < 12; i++)
      seen.push((await sendRaw(service.url, '/v1/persons', text, {})).status)
    expect(new Set(seen)).toEqual(new Set([401, 429]))
    // They hold up no key that is used for the first time.
    expect((await service.send('/v1/persons')).status).toBe(200)
    await service.close()
  },
)

test('what the limit of a secret key refuses is counted for its project', async ({
  address,
  project,
  db,
}) => {
  const service = await startService(db, address, project, {
    rateLimit: tokenBuckets(1 / 86_400, 1),
  })
  const other = await newProject(db)
  for (let n = 0; n < 4; n++) await service.send('/v1/persons')
  await service.send('/v1/persons', { key: other.secretKey })
  await service.close()
  const refused = async ({ id }: { id: number }) =>
    (await readProjectSummary(db.sql, id)).requestsRefusedToday
  expect([await refused(project), await refused(other)]).toEqual([3, 0])
})

test('a 429 is sent late, so that retrying at once gains nothing', async ({
  recordings,
  address,
  project,
}) => {
  const service = await startIngesting(recordings, address, project, {
    rateLimit: tokenBuckets(1 / 86_400, 1),
  })
  const seen: number[] = []
  const begun = performance.now()
  for (let n = 0; n < 4; n++) seen.push((await service.send('/v1/persons')).status)
  expect(seen).toEqual([200, 429, 429, 429])
  expect(performance.now() - begun).toBeGreaterThan(3 * 190)
  await service.close()
})
