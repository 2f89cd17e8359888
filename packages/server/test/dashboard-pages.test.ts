import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { readPages } from '../src/dashboard/pages.ts'
import { test as base, type Dashboard, startDashboard } from './dashboard-fixtures.ts'

const script = `${'console.log("a page")\n'.repeat(100)}`
const html = '<!doctype html><script type="module" src="/assets/a-1.js"></script>'
const replay =
  '<!doctype html><script type="module" src="/assets/r-1.js"></script><link href="/assets/b-1.js">'

/** `site`: the whole server with a small build of a dashboard. */
const test = base.extend<{ site: Dashboard }>({
  site: async ({ recordings, address, project, signIn }, use) => {
    const folder = await mkdtemp(join(tmpdir(), 'lethe-pages-'))
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'index.html'), html)
    await writeFile(join(folder, 'replay.html'), replay)
    await writeFile(join(folder, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    await writeFile(join(folder, 'assets/a-1.js'), script)
    await writeFile(join(folder, 'assets/secret.map'), 'no file of a type that is served')
    const site = await startDashboard(
      { recordings, address, project, signIn },
      { app: { pages: await readPages(folder) } },
    )
    await use(site)
    await site.close()
    await rm(folder, { recursive: true })
  },
})

/** Of a GET for a target as it is, which fetch would rewrite. */
function statusOf(url: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { path, headers: accept, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })
}

const accept = { accept: 'text/html,application/xhtml+xml' }

describe('the pages', () => {
  test('are one file at every address of the dashboard, under a strict policy', async ({
    site,
  }) => {
    for (const path of ['/', '/setup', '/p/1/persons/42?tab=sessions', '/sign-in']) {
      const answer = await fetch(site.url + path, { headers: accept })
      expect(answer.status).toBe(200)
      expect(await answer.text()).toBe(html)
      const policy = answer.headers.get('content-security-policy')
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
      expect(policy).toContain("frame-ancestors 'none'")
      // Recordings are played at this machine's other name, which is another site.
      expect(policy).toContain(`frame-src 'self' ${site.url.replace('127.0.0.1', 'localhost')};`)
      expect(policy?.replace(/frame-src [^;]*/, '')).not.toMatch(/unsafe|https?:|\*/)
      expect(answer.headers.get('x-frame-options')).toBe('DENY')
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
      expect(answer.headers.get('cache-control')).toBe('no-cache')
    }
  })

  test('do not hide other paths', async ({ site }) => {
    for (const [path, status] of [
      ['/v1/persons', 401],
      ['/v1/nothing', 401],
      ['/v2/persons', 404],
      ['/ingest/v1/nothing', 404],
      ['/sdk/nothing.js', 404],
      ['/health/nothing', 404],
      ['/dashboard/v1/nothing', 404],
      ['/dashboard/v1/projects', 401],
      ['/assets/nothing.js', 404],
      ['/.well-known/nothing', 404],
      ['/health/live', 200],
      ['/.well-known/jwks.json', 200],
    ] as const) {
      const answer = await fetch(site.url + path, { headers: accept })
      expect([path, answer.status]).toEqual([path, status])
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    }
    for (const [target, status] of [
      ['*', 400],
      ['*v1/persons', 400],
      ['/%761/nothing', 401],
      [`${site.url}/v1/nothing`, 401],
      [`${site.url}/assets/nothing.js`, 404],
    ] as const) {
      expect([target, await statusOf(site.url, target)]).toEqual([target, status])
    }
    const posted = await fetch(`${site.url}/persons`, { method: 'POST', headers: accept })
    expect(posted.status).toBe(404)
    const notAPage = await fetch(`${site.url}/persons`)
    expect(notAPage.status).toBe(404)
  })

  test('files with a hash in their name can be cached without an end, and are sent compressed', async ({
    site,
  }) => {
    const file = `${site.url}/assets/a-1.js`
    const answer = await fetch(file)
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(await answer.text()).toBe(script)
    const plain = await fetch(file, { headers: { 'accept-encoding': 'identity' } })
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(await plain.text()).toBe(script)
    const etag = answer.headers.get('etag')!
    expect((await fetch(file, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const icon = await fetch(`${site.url}/favicon.svg`)
    expect(icon.headers.get('content-type')).toBe('image/svg+xml')
    expect(icon.headers.get('cache-control')).toBe('no-cache')
    expect((await fetch(`${site.url}/assets/secret.map`)).status).toBe(404)
    expect((await fetch(`${site.url}/assets/..%2f..%2fpackage.json`)).status).toBe(404)
    expect((await fetch(`${site.url}/replay.html`)).status).toBe(404)
  })

  test('the replay frame is sealed off: its own scripts by nonce, and no request', async ({
    site,
  }) => {
    const [one, two] = [await fetch(`${site.url}/replay`), await fetch(`${site.url}/replay`)]
    const policies = [one, two].map((answer) => answer.headers.get('content-security-policy')!)
    expect(policies[0]).not.toBe(policies[1])
    for (const [i, answer] of [one, two].entries()) {
      const policy = policies[i]!
      const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1]
      expect(await answer.text()).toBe(
        replay
          .replace('<script', `<script nonce="${nonce}"`)
          .replace('<link', `<link nonce="${nonce}"`),
      )
      expect(policy).toContain('sandbox allow-scripts allow-same-origin;')
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("connect-src 'none'")
      expect(policy).toContain("frame-ancestors 'self'")
      // What a recording may bring along comes with it: no directive names a host or this origin.
      expect(policy.replace(/frame-ancestors .*/, '')).not.toMatch(/'self'|https?:|\*/)
      expect(answer.headers.get('document-isolation-policy')).toBe('isolate-and-credentialless')
      expect(answer.headers.get('origin-agent-cluster')).toBe('?1')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('x-dns-prefetch-control')).toBe('off')
    }
  })

  test('if they are not built, the page says how to build them', async ({ dashboard }) => {
    const answer = await fetch(dashboard.url, { headers: accept })
    expect(answer.status).toBe(503)
    expect(await answer.text()).toContain('npm run build')
    expect(await readPages('/nonexistent')).toBeUndefined()
  })
})
