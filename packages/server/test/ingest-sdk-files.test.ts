import { hash } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { revokeKey } from '../src/projects/store.ts'
import { demoKey } from '../src/recordings/demo.ts'
import { publishSdk, readSdk } from '../src/recordings/sdk-files.ts'
import { newProject } from './fixtures.ts'
import { test as base, startIngesting } from './recordings-fixtures.ts'

/** `build`: makes a folder as the build of the SDK does, with files of that version. */
const test = base.extend<{ build: (version: string) => Promise<string> }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  build: async ({}, use) => {
    const folder = await mkdtemp(join(tmpdir(), 'lethe-sdk-'))
    await use(async (version) => {
      const files: Record<string, object> = {}
      for (const name of ['lethe.js', 'recorder.js', 'snippet.html']) {
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
  test('are served under their version, for ever, to pages of any origin', async ({
    recordings,
    address,
    project,
    build,
  }) => {
    const sdk = await readSdk(await build('1.2.3'))
    const service = await startIngesting(recordings, address, project, { sdk })
    for (const name of ['lethe.js', 'recorder.js', 'manifest.json']) {
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

  test('are sent compressed to whoever takes that', async ({
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

  test('are refused where one is not the one that pages check for', async ({ build }) => {
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
  test('has the snippet with a working key, under a strict policy', async ({
    recordings,
    address,
    project,
    build,
    db,
    folder,
  }) => {
    const path = join(folder, 'demo-key')
    const sdk = await readSdk(await build('1.2.3'))
    const service = await startIngesting(recordings, address, project, {
      sdk,
      findDemoKey: () => demoKey(db.sql, path),
    })
    const { status, text, headers } = await service.send('/demo', { key: null })
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('no-store')
    const nonce = /'nonce-([^']+)'/.exec(headers.get('content-security-policy') ?? '')?.[1]
    expect(text).toContain(`<script nonce="${nonce}">`)
    expect(text).not.toMatch(/<script>|<style>|\{\{|\sstyle=|\son[a-z]+=/)
    expect(text).toContain('"/sdk/1.2.3/lethe.js"')
    const [key] = /pk_[0-9A-Za-z]{49}/.exec(text) ?? []
    expect((await service.ingest('start', {}, { key: key! })).status).toBe(200)
    const again = await service.send('/demo', { key: null })
    expect(again.text).toContain(key)
    expect(again.text).not.toContain(nonce)
    await service.close()
  })

  test('is there only where it is asked for', async ({ ingesting }) => {
    expect((await ingesting.send('/demo', { key: null })).status).toBe(404)
  })

  test('keeps its key, for its owner only, and makes a new one when it has to', async ({
    db,
    folder,
  }) => {
    await newProject(db)
    const path = join(folder, 'demo-key')
    const first = await demoKey(db.sql, path)
    expect(first).toMatch(/^pk_/)
    expect(await demoKey(db.sql, path)).toBe(first)
    expect((await readFile(path, 'utf8')).trim()).toBe(first)
    expect((await stat(path)).mode & 0o777).toBe(0o600)

    const [key] = await db.sql<{ id: string }>`
      select id from keys where last4 = ${first!.slice(-4)} and name = 'demo page'`
    await revokeKey(db.sql, key!.id, 0)
    const second = await demoKey(db.sql, path)
    expect(second).not.toBe(first)
    await writeFile(path, 'nonsense')
    const third = await demoKey(db.sql, path)
    expect(third).not.toBe(second)
    await rm(path)
    expect(await demoKey(db.sql, path)).not.toBe(third)
  })
})
