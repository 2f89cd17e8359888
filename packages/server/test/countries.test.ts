import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { listSessions } from '../src/dashboard/session-store.ts'
import { openCountries } from '../src/recordings/countries.ts'
import { startIngesting, test } from './recordings-fixtures.ts'

/** A value as the MaxMind DB format writes it: texts, numbers, lists and maps of them. */
function encoded(value: unknown): Buffer {
  if (typeof value === 'string') return head(2, Buffer.byteLength(value), Buffer.from(value))
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return head(6, 4, bytes)
  }
  if (Array.isArray(value))
    return Buffer.concat([Buffer.from([value.length, 4]), ...value.map(encoded)])
  const entries = Object.entries(value as object)
  return head(7, entries.length, ...entries.flatMap((entry) => entry.map(encoded)))
}

const head = (type: number, size: number, ...rest: Buffer[]) =>
  Buffer.concat([Buffer.from([(type << 5) | size]), ...rest])

/** A database of IPv4: the lower half of all addresses is in one country, the other in another. */
async function newDatabase(lower: string, upper: string): Promise<string> {
  const [first, second] = [lower, upper].map((code) => encoded({ country: { iso_code: code } }))
  const nodes = 1
  const at = (offset: number) => [0, 0, nodes + 16 + offset]
  const bytes = Buffer.concat([
    Buffer.from([...at(0), ...at(first!.length)]),
    Buffer.alloc(16),
    first!,
    second!,
    Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'),
    encoded({
      node_count: nodes,
      record_size: 24,
      ip_version: 4,
      database_type: 'Test-Country',
      languages: ['en'],
      binary_format_major_version: 2,
      binary_format_minor_version: 0,
      build_epoch: 1_700_000_000,
      description: { en: 'for a test' },
    }),
  ])
  return newFile(bytes)
}

async function newFile(bytes: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-countries-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'countries.mmdb')
  await writeFile(path, bytes)
  return path
}

test('a session has the country of its address, is found by it, and the address is stored nowhere', async ({
  recordings,
  address,
  project,
}) => {
  const findCountry = await openCountries(await newDatabase('AT', 'DE'))
  const service = await startIngesting(recordings, address, project, { findCountry, trustProxy: 1 })
  onTestFinished(() => service.close())
  const startFrom = async (visitor: string) => {
    const headers = { 'x-forwarded-for': visitor }
    return (await service.ingest('start', {}, { headers })).json.sessionId as string
  }
  const near = await startFrom('11.22.33.44')
  const far = await startFrom('203.0.113.77')
  const countries = async (filter: object) =>
    (await listSessions(recordings.db.sql, project.id, filter, null, 10)).sessions.map(
      ({ id, country }) => [id, country],
    )
  expect(await countries({})).toEqual([
    [far, 'DE'],
    [near, 'AT'],
  ])
  expect(await countries({ country: 'AT' })).toEqual([[near, 'AT']])
  expect(await countries({ country: 'FR' })).toEqual([])
  expect((await service.send(`/v1/sessions/${near}`)).json.session.country).toBe('AT')
  const rows = await recordings.db.sql`select * from sessions`
  expect(JSON.stringify(rows)).not.toMatch(/11\.22\.33\.44|203\.0\.113\.77/)
  expect(service.logged()).not.toMatch(/11\.22\.33\.44|203\.0\.113\.77/)
})

test('an address that the database cannot look up has no country', async () => {
  const findCountry = await openCountries(await newDatabase('AT', 'DE'))
  for (const address of ['2001:db8::1', 'unknown', '', '11.22.33.44:80']) {
    expect(findCountry?.(address), address).toBeNull()
  }
  expect(findCountry?.('::ffff:203.0.113.77')).toBe('DE')
})

test('without a database of countries a session has none', async ({ ingesting }) => {
  const { sessionId } = await ingesting.start()
  expect((await ingesting.send(`/v1/sessions/${sessionId}`)).json.session.country).toBeNull()
  expect(await openCountries('')).toBeUndefined()
})

test('a file that is missing or is no such database is refused in a line that names the setting', async () => {
  await expect(openCountries('/nowhere/countries.mmdb')).rejects.toThrow(
    /COUNTRY_DATABASE names cannot be read \(ENOENT\)/,
  )
  for (const bytes of [Buffer.alloc(0), Buffer.from('<html>not found</html>')]) {
    await expect(openCountries(await newFile(bytes))).rejects.toThrow(
      /COUNTRY_DATABASE names is no database in the MaxMind DB format/,
    )
  }
})
