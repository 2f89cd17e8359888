import { hash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { writeAudit } from '../src/members/audit-store.ts'
import { listProjects } from '../src/projects/store.ts'
import { findDemoKey, openDemo } from '../src/recordings/demo.ts'
import { publishSdk, readSdk } from '../src/recordings/sdk-files.ts'
import { test as base, startIngesting } from './recordings-fixtures.ts'

/** `build`: makes a folder as the build of the SDK does, with files of that version. */
const test = base.extend<{ build: (version: string) => Promise<string> }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  build: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), 'lethe-sdk-'))
    await use(async (version) => {
      const files: Record<string, object> = {}
      for (const name of ['lethe.js', 'recorder.js', 'more.js', 'snippet.html']) {
        const text = `/* ${name} of ${version} */ "{{host}}/sdk/${version}/lethe.js" "{{key}}"`
        await writeFile(join(folder, name), text)
        const integrity = `sha384-${hash('sha384', text, 'base64')}`
        files[name] = { bytes: text.length, gzip: 1, integrity }
      }
      await writeFile(join(folder, 'manifest.json'), JSON.stringify({ version, files }))
      return folder
    })
    await rm(folder, { recursive: true })
  },
})

describe('the files of the SDK', () => {
  test('are served under their version, cacheable without an end, to pages of any origin', async ({
    recordings,
    address,
    project,
    build,
  }) => {
    const sdk = await readSdk(await build('1.2.3'))
    const service = await startIngesting(recordings, address, project, { sdk })
    for (const name of ['lethe.js', 'recorder.js', 'more.js', 'manifest.json']) {
      const answer = await service.send(`/sdk/1.2.3/${name}`, { key: null })
      expect(answer.status).toBe(200)
      expect(answer.text).toBe(sdk?.files.get(name)?.toString())
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(answer.headers.get('access-control-allow-origin')).toBe('*')
      expect(answer.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    }
    const script = await service.send('/sdk/1.2.3/lethe.js', { key: null })
    expect(script.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    const newest = await service.send('/sdk/manifest.json', { key: null })
    expect(newest.json.version).toBe('1.2.3')
    expect(newest.headers.get('cache-control')).toBe('no-cache')
    await service.close()
  })

  test('are sent compressed to clients that accept it', async ({
    recordings,
    address,
    project,
    build,
  }) => {
    const sdk = await readSdk(await build('1.2.3'))
    const service = await startIngesting(recordings, address, project, { sdk })
    const response = await fetch(`${service.url}/sdk/1.2.3/lethe.js`, {
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect(response.headers.get('vary')).toBe('accept-encoding')
    expect(await response.text()).toBe(sdk?.files.get('lethe.js')?.toString())
    await service.close()
  })

  test('of an earlier version stay where pages have them, after an upgrade', async ({
    recordings,
    address,
    project,
    build,
  }) => {
    const earlier = (await readSdk(await build('1.2.3')))!
    await publishSdk(recordings.blobs, earlier)
    const sdk = (await readSdk(await build('1.3.0')))!
    await publishSdk(recordings.blobs, sdk)
    const service = await startIngesting(recordings, address, project, { sdk })
    const old = await service.send('/sdk/1.2.3/recorder.js', { key: null })
    expect([old.status, old.text]).toEqual([200, earlier.files.get('recorder.js')?.toString()])
    expect((await service.send('/sdk/1.3.0/recorder.js', { key: null })).status).toBe(200)
    for (const path of [
      '/sdk/1.2.4/lethe.js',
      '/sdk/1.2.3/other.js',
      '/sdk/1.2.3/snippet.html',
      '/sdk/..%2fledger/lethe.js',
      '/sdk/1.2.3/..%2f..%2f1.3.0%2flethe.js',
      '/sdk/__proto__/lethe.js',
      '/sdk/1.2.3/constructor',
    ]) {
      expect((await service.send(path, { key: null })).status).toBe(404)
    }
    await service.close()
  })

  test('are refused if one does not have the hash that pages check', async ({ build }) => {
    const folder = await build('1.2.3')
    await writeFile(join(folder, 'recorder.js'), 'changed')
    await expect(readSdk(folder)).rejects.toThrow(/recorder.js/)
  })

  test('may be missing: all else works', async ({ recordings, address, project, folder }) => {
    const sdk = await readSdk(join(folder, 'nowhere'))
    expect(sdk).toBeUndefined()
    const service = await startIngesting(recordings, address, project, { sdk })
    expect((await service.send('/sdk/1.2.3/lethe.js', { key: null })).status).toBe(404)
    expect((await service.ingest('start', {})).status).toBe(200)
    await service.close()
  })
})

describe('the demo page', () => {
  const origin = 'http://localhost:3000'

  test('has the snippet with a working key, under a strict policy', async ({
    recordings,
    address,
    project,
    build,
    db,
  }) => {
    await openDemo(db, [origin], writeAudit)
    const sdk = await readSdk(await build('1.2.3'))
    const service = await startIngesting(recordings, address, project, {
      sdk,
      findDemoKey: () => findDemoKey(db.sql),
    })
    const { status, text, headers } = await service.send('/demo', { key: null })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    const nonce = /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1]
    expect(text).toContain(`<script nonce="${nonce}">`)
    expect(text).not.toMatch(/<script>|<style>|\{\{|\sstyle=|\son[a-z]+=/)
    expect(text).toContain('"/sdk/1.2.3/lethe.js"')
    const [key = ''] = /pk_[0-9A-Za-z]{49}/.exec(text) ?? []
    expect((await service.ingest('start', {}, { key, headers: { origin } })).status).toBe(200)
    const again = await service.send('/demo', { key: null })
    expect(again.text).toContain(key)
    expect(again.text).not.toContain(nonce)
    // The key of a page is used in its place, and nothing that is none.
    const own = await service.send(`/demo?key=${project.publicKey}`, { key: null })
    expect(own.text).toContain(project.publicKey)
    for (const other of ['pk_x', project.secretKey, '%3Cscript%3E', `${key}&key=${key}`]) {
      const { text: page } = await service.send(`/demo?key=${other}`, { key: null })
      expect(page).toContain(key)
      expect(page).not.toContain(project.secretKey)
    }
    await service.close()
  })

  test('is there only where it is asked for', async ({ ingesting }) => {
    expect((await ingesting.send('/demo', { key: null })).status).toBe(404)
  })

  test("records into a project of its own, and only from the service's own address", async ({
    db,
    recordings,
    address,
    project,
    build,
  }) => {
    await openDemo(db, [origin], writeAudit)
    const first = await findDemoKey(db.sql)
    await openDemo(db, [origin, 'http://127.0.0.1:3000'], writeAudit)
    expect(await findDemoKey(db.sql)).toBe(first)
    const projects = await db.sql<{ id: number }>`select id from projects where is_demo`
    expect(projects).toHaveLength(1)
    expect((await listProjects(db.sql)).map(({ id }) => id)).not.toContain(projects[0]!.id)
    const written = await db.sql<{ action: string }>`
      select action from audit_log where project_id = ${projects[0]!.id} order by id`
    expect(written.map(({ action }) => action)).toEqual(['project.created', 'key.created'])

    const sdk = await readSdk(await build('1.2.3'))
    const options = { sdk, findDemoKey: () => findDemoKey(db.sql) }
    const service = await startIngesting(recordings, address, project, options)
    const start = async (headers: Record<string, string>) =>
      (await service.ingest('start', {}, { key: first, headers })).status
    expect(await start({ origin: 'http://127.0.0.1:3000' })).toBe(200)
    expect(await start({ origin: 'https://shop.example' })).toBe(403)
    expect(await start({})).toBe(403)
    await service.close()
  })

  test('makes no key at a visit, however often its own is revoked', async ({
    db,
    recordings,
    address,
    project,
    build,
  }) => {
    await openDemo(db, [origin], writeAudit)
    const sdk = await readSdk(await build('1.2.3'))
    const options = { sdk, findDemoKey: () => findDemoKey(db.sql) }
    const service = await startIngesting(recordings, address, project, options)
    const countKeys = async () => (await db.sql`select from keys`).length
    const before = await countKeys()
    await service.send('/demo', { key: null })
    await db.sql`
      update keys set revoked_at = app_now()
      where project_id = (select id from projects where is_demo)`
    await openDemo(db, [origin], writeAudit)
    const { text } = await service.send('/demo', { key: null })
    expect(text).not.toMatch(/pk_[0-9A-Za-z]{49}/)
    expect(await countKeys()).toBe(before)
    await service.close()
  })
})
