/**
 * The proxies' configurations of deploy/ as they stand there, but for addresses, ports and the
 * certificate: the whole product below a path, by https.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'
import { Agent, fetch } from 'undici'
import { describe, expect, onTestFinished } from 'vitest'
import { isDeep } from '../packages/server/test/proof/deep.ts'
import { runsHere } from '../packages/server/test/s3-servers/start.ts'
import { freePort } from './drivers.ts'
import {
  type Lethe,
  newWindow,
  ownerEmail,
  password,
  recordVisit,
  setUp,
  startLethe,
  test,
} from './lethe.ts'

const deploy = join(import.meta.dirname, '../deploy')

interface Proxy {
  file: string
  program: string
  /** What of the file is another one's here: it listens at `port` and leads to `lethe`. */
  places(folder: string, port: number, lethe: string): Record<string, string>
  words(file: string): string[]
  /** What the file is a part of. */
  around?(folder: string): string
}

const proxies: Record<string, Proxy> = {
  nginx: {
    file: 'nginx.conf',
    program: '/usr/sbin/nginx',
    places: (folder, port, lethe) => ({
      'listen 443': `listen 127.0.0.1:${port}`,
      '127.0.0.1:3000': lethe,
      '/etc/lethe/': `${folder}/`,
    }),
    words: (file) => ['-c', `${file}.around`, '-e', 'stderr', '-g', 'daemon off;'],
    around: (folder) => `
      # Bodies are kept in the folder, which is this user's.
      ${process.getuid?.() === 0 ? 'user root;' : ''}
      pid ${folder}/pid;
      error_log stderr warn;
      events {}
      http {
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
          .map((name) => `${name}_temp_path ${folder}/temporary-${name};`)
          .join('\n')}
        include ${folder}/nginx.conf;
      }`,
  },
  haproxy: {
    file: 'haproxy.cfg',
    program: '/usr/sbin/haproxy',
    places: (folder, port, lethe) => ({
      'bind :443': `bind 127.0.0.1:${port}`,
      '127.0.0.1:3000': lethe,
      '/etc/lethe/': `${folder}/`,
    }),
    words: (file) => ['-db', '-f', file],
  },
  caddy: {
    file: 'Caddyfile',
    program: '/usr/bin/caddy',
    // It makes a certificate by itself, and shall leave nothing on this machine.
    places: (_folder, port, lethe) => ({
      '{$LETHE_SITE:example.com} {': `{
        admin off
        auto_https disable_redirects
        skip_install_trust
      }
      https://localhost:${port} {
        bind 127.0.0.1`,
      '{$LETHE_UPSTREAMS:127.0.0.1:3000}': lethe,
    }),
    words: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
}

/** The same file with other places; each of them is in it. */
function moved(text: string, places: Record<string, string>): string {
  // The comments show the same addresses.
  let result = text.replaceAll(/^\s*#.*$/gm, '')
  for (const [from, to] of Object.entries(places)) {
    expect(result).toContain(from)
    result = result.replaceAll(from, to)
  }
  return result
}

/** Lethe behind the proxy, as it is reached from outside. */
async function startBehind(proxy: Proxy, settings: Record<string, string> = {}): Promise<Lethe> {
  const port = await freePort()
  const url = `https://localhost:${port}/lethe`
  const { lethe, stop } = await startLethe({
    PUBLIC_URL: url,
    TRUST_PROXY: '1',
    DEMO: 'on',
    ...settings,
  })
  onTestFinished(stop)
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const name = '-subj /CN=localhost -addext subjectAltName=DNS:localhost'.split(' ')
  const key = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2'.split(' ')
  const files = ['-keyout', `${folder}/tls.key`, '-out', `${folder}/tls.pem`]
  execFileSync('openssl', ['req', '-x509', ...key, ...name, ...files], { stdio: 'ignore' })
  const certificate = await readFile(`${folder}/tls.pem`, 'utf8')
  const withKey = certificate + (await readFile(`${folder}/tls.key`, 'utf8'))
  await writeFile(`${folder}/tls-with-key.pem`, withKey)
  const file = join(folder, proxy.file)
  const text = await readFile(join(deploy, proxy.file), 'utf8')
  await writeFile(file, moved(text, proxy.places(folder, port, new URL(lethe.url).host)))
  if (proxy.around) await writeFile(`${file}.around`, proxy.around(folder))
  await mkdir(`${folder}/home`)
  const child = spawn(proxy.program, proxy.words(file), {
    env: { PATH: process.env.PATH, HOME: `${folder}/home` },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaints = ''
  child.stderr.on('data', (bytes) => {
    complaints += bytes
  })
  onTestFinished(async () => {
    if (child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  while (!(await isServing(port))) {
    if (child.exitCode !== null) throw new Error(`${proxy.program} ended: ${complaints}`)
    await sleep(50)
  }
  return { ...lethe, url }
}

/** Caddy listens before it has made its certificate, and ends what is opened until then. */
const isServing = (port: number) =>
  new Promise<boolean>((resolve) => {
    const at = { port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }
    const socket = connect(at, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

/** A client at another address of this machine. */
function clientAt(localAddress: string): Agent {
  const dispatcher = new Agent({ localAddress, connect: { rejectUnauthorized: false } })
  // Not close: it would wait for bodies that nobody reads.
  onTestFinished(() => dispatcher.destroy())
  return dispatcher
}

const awkward = ['a/b', 'a//b', 'a%2Fb', 'ü ß', 'a+b', 'a;b=c', 'a?b#c', 'x@example.com', '\'"\\']

for (const [name, proxy] of Object.entries(proxies)) {
  const missing = existsSync(proxy.program) ? [] : [name]
  const here = runsHere(`Lethe behind ${name}`, missing, process.env.CI === 'true')

  describe.skipIf(!here.runs)(`behind ${name}, below a path`, () => {
    test('the API works, whatever characters ids have, the dashboard, the recorder and a replay', async ({
      browser,
    }) => {
      const lethe = await startBehind(proxy)
      const dispatcher = clientAt('127.0.0.2')
      const ask = (
        path: string,
        options: { method?: string; body?: unknown; headers?: object } = {},
      ) =>
        fetch(lethe.url + path, {
          dispatcher,
          method: options.method ?? 'GET',
          headers: {
            authorization: `Bearer ${lethe.secretKey}`,
            ...(options.body !== undefined && { 'content-type': 'application/json' }),
            ...options.headers,
          },
          ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
        })

      for (const externalId of awkward) {
        const made = await ask('/v1/persons', { method: 'POST', body: { externalId } })
        expect(made.status, externalId).toBe(201)
        const read = await ask(`/v1/persons/${encodeURIComponent(externalId)}`)
        expect(await read.json(), externalId).toMatchObject({ person: { externalId } })
      }

      // What a window asks for is the same behind each: in a normal run one has it.
      if (!isDeep && name !== 'nginx') {
        const token = new URL(lethe.setUpLink).hash.slice(1)
        const owner = { token, name: 'Margaret', email: ownerEmail, password, projectName: 'Shop' }
        const headers = { origin: new URL(lethe.url).origin }
        const made = await ask('/dashboard/v1/set-up', { method: 'POST', body: owner, headers })
        expect(made.status).toBe(201)
        for (const part of ['Path=/lethe', 'Secure']) {
          expect(made.headers.getSetCookie().join()).toContain(`; ${part}`)
        }
        const html = await (await ask('/', { headers: { accept: 'text/html' } })).text()
        const links = [...html.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link]) => link)
        expect(links.length).toBeGreaterThan(1)
        for (const link of [...links, 'sdk/manifest.json']) {
          const target = new URL(link as string, `${lethe.url}/`)
          expect((await fetch(target, { dispatcher })).status, link).toBe(200)
        }
        return
      }
      const ignoreHTTPSErrors = true
      const context = await newWindow(browser, lethe, { ignoreHTTPSErrors })
      const page = await context.newPage()
      await setUp(page, lethe)
      expect(page.url()).toBe(`${lethe.url}/projects/1/install`)
      expect(await page.locator('pre').first().textContent()).toContain(`${lethe.url}/sdk/`)
      await recordVisit(browser, lethe, 'ada', 2_000, { ignoreHTTPSErrors })
      await page.getByRole('link', { name: 'Watch recording' }).click({ timeout: 30_000 })
      await page.waitForURL(`${lethe.url}/projects/1/sessions/*`)
      // The same page again, asked for as a whole.
      await page.reload()
      const recorded = page
        .frameLocator('iframe[title="Replay of the session"]')
        .frameLocator('iframe')
      await recorded.getByText('Fennel & Fig').first().waitFor({ state: 'attached' })
      await page.goto(`${lethe.url}/`)
      await page.getByRole('button', { name: 'Margaret Hamilton' }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.waitForURL(`${lethe.url}/sign-in`)
      await page.goto(`${lethe.url}/projects/1/persons`)
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      expect(page.url()).toContain(`${lethe.url}/sign-in?next=`)
      await context.close()
    })

    if (isDeep) {
      test('bodies over the limit, forged headers, links and cookies', async ({ browser }) => {
        const lethe = await startBehind(proxy, { INGEST_LIMIT_PER_ADDRESS: '5' })
        const client = clientAt('127.0.0.2')
        const get = (path: string, headers = {}) =>
          fetch(lethe.url + path, { dispatcher: client, headers })
        const post = (path: string, headers: Record<string, string>, body: string | Buffer) =>
          fetch(lethe.url + path, { dispatcher: client, method: 'POST', headers, body })

        const json = {
          authorization: `Bearer ${lethe.secretKey}`,
          'content-type': 'application/json',
        }
        const large = await post('/v1/persons', json, Buffer.alloc(3_000_000, ' '))
        expect(large.status).toBe(413)
        expect(await large.json()).toMatchObject({ error: { code: 'payload_too_large' } })

        const forged = { 'x-request-id': 'forged', 'x-forwarded-for': '203.0.113.7' }
        const refused = await get('/v1/persons', forged)
        const { error } = (await refused.json()) as { error: { requestId: string } }
        expect(refused.headers.get('x-request-id')).toBe(error.requestId)
        expect(error.requestId).not.toBe('forged')

        // One address, whatever it says of itself; another one is not held up by it.
        const start = (from: Agent, address: string) =>
          fetch(`${lethe.url}/ingest/v1/start?key=${lethe.publicKey}`, {
            dispatcher: from,
            method: 'POST',
            headers: { 'x-forwarded-for': address },
            body: '{}',
          }).then(({ status }) => status)
        const statuses = new Set<number>()
        for (let n = 0; n < 60; n++) statuses.add(await start(client, `203.0.113.${n}`))
        expect([...statuses].sort()).toEqual([200, 429])
        expect(await start(clientAt('127.0.0.3'), '203.0.113.7')).toBe(200)

        const page = await (await get('/docs', { accept: 'text/html' })).text()
        const links = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(
          ([, link]) => link as string,
        )
        expect(links.length).toBeGreaterThan(2)
        for (const link of links) {
          const target = new URL(link, `${lethe.url}/docs`)
          expect(target.href).toContain(`${lethe.url}/`)
          expect((await fetch(target, { dispatcher: client })).status, link).toBe(200)
        }
        const { servers } = (await (await get('/docs/json')).json()) as { servers: unknown[] }
        expect(servers).toMatchObject([{ url: '/lethe/' }])
        expect((await get('/sdk/manifest.json')).status).toBe(200)

        const context = await newWindow(browser, lethe, { ignoreHTTPSErrors: true })
        await setUp(await context.newPage(), lethe)
        const cookies = await context.cookies(lethe.url)
        expect(cookies.length).toBeGreaterThan(0)
        for (const cookie of cookies) {
          expect(cookie).toMatchObject({ path: '/lethe', secure: true, httpOnly: true })
        }
        await context.close()
      })

      test('a body that takes half a minute to arrive is taken', async () => {
        const lethe = await startBehind(proxy)
        const dispatcher = clientAt('127.0.0.2')
        const properties = JSON.stringify({ text: 'x'.repeat(100_000) })
        const body = Buffer.from(`{"externalId":"slow","properties":${properties}}`)
        async function* slowly() {
          for (let at = 0; at < body.length; at += 4_000) {
            yield body.subarray(at, at + 4_000)
            await sleep(1_000)
          }
        }
        const stored = await fetch(`${lethe.url}/v1/persons`, {
          dispatcher,
          method: 'POST',
          headers: {
            authorization: `Bearer ${lethe.secretKey}`,
            'content-type': 'application/json',
            'content-length': String(body.length),
          },
          body: slowly(),
          duplex: 'half',
        })
        expect(stored.status).toBe(201)
      })
    }
  })
}
