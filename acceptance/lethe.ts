import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { test as base, expect, inject } from 'vitest'
import { launch } from '../packages/sdk-browser/test/launch.ts'
import { addressesOf } from '../packages/server/src/embedded/roles.ts'
import { jobsChannel } from '../packages/server/src/erasure/jobs.ts'
import { connectOne } from '../packages/server/src/sql.ts'

const root = join(import.meta.dirname, '..')

/** The whole product as somebody runs it: one command, a folder, a port. */
export interface Lethe {
  url: string
  /** By which the first owner comes in. */
  setUpLink: string
  dataDir: string
  secretKey: string
  publicKey: string
  /** A request of a customer's backend. */
  api(method: string, path: string, body?: unknown): Promise<{ status: number; json: Json }>
}

// biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
type Json = any

/** What went wrong in a page without anybody seeing it: requests to elsewhere, errors, violations. */
const unseen: string[] = []

export const test = base.extend<{
  nothingUnseen: undefined
  lethe: Lethe
  browser: Browser
  /** The owner, signed in, in an empty window of 1440 by 900. */
  owner: Page
}>({
  nothingUnseen: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      await use(undefined)
      expect(unseen.splice(0), 'requests to elsewhere, and errors in pages').toEqual([])
    },
    { auto: true },
  ],
  lethe: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const running = await startLethe()
      await use(running.lethe)
      await running.stop()
    },
    { scope: 'file' },
  ],
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const browser = await launch()
      await use(browser)
      await browser.close()
    },
    { scope: 'file' },
  ],
  owner: [
    async ({ lethe, browser }, use) => {
      const context = await newWindow(browser, lethe)
      // As the page of the set-up link does it.
      const token = new URL(lethe.setUpLink).hash.slice(1)
      const set = { token, name: ownerName, email: ownerEmail, password, projectName: 'Web shop' }
      const headers = { origin: lethe.url }
      const made = await context.request.post('/dashboard/v1/set-up', { data: set, headers })
      if (!made.ok()) throw new Error(`The owner could not be made: ${await made.text()}`)
      await use(await context.newPage())
    },
    { scope: 'file' },
  ],
})

export const password = 'correct horse battery staple'
export const ownerEmail = 'margaret@example.com'
const ownerName = 'Margaret Hamilton'

/** Makes the owner by the set-up link; afterwards the page of the installation is shown. */
export async function setUp(page: Page, lethe: Lethe): Promise<void> {
  await page.goto(lethe.setUpLink)
  await page.getByLabel('Your name').fill(ownerName)
  await page.getByLabel('Email', { exact: true }).fill(ownerEmail)
  await page.getByLabel('Password').fill(password)
  await page.getByLabel('Project name').fill('Web shop')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForURL('**/install')
}

/** A window with cookies of its own and without motion, in which nothing may go wrong unseen. */
export async function newWindow(
  browser: Browser,
  lethe: Lethe,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({
    baseURL: lethe.url,
    viewport: { width: 1440, height: 900 },
    acceptDownloads: true,
    // What moves is waited for, and drawn sixty times a second.
    reducedMotion: 'reduce',
    ...options,
  })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  context.on('request', (request) => {
    const url = request.url()
    const isOwn = [lethe.url, replayOrigin(lethe)].some((origin) => url.startsWith(`${origin}/`))
    if (!isOwn && !/^(?:data|blob|about):/.test(url)) unseen.push(url)
  })
  context.on('weberror', (error) => unseen.push(`an error in a page: ${error.error().message}`))
  context.on('console', (message) => {
    const text = message.text()
    // A 4xx response is not an error of the page: some tests request what does not exist.
    const isWrong = message.type() === 'error' && !text.startsWith('Failed to load resource')
    if (isWrong || /Content Security Policy|Refused to/.test(text)) {
      unseen.push(`${new URL(message.page()?.url() ?? lethe.url).pathname}: ${text}`)
    }
  })
  return context
}

/** Where recordings are played: this machine by its other name. */
const replayOrigin = ({ url }: Lethe) => url.replace('127.0.0.1', 'localhost')

/** With `environment` over what the tests usually run it with. */
export async function startLethe(
  environment: Record<string, string> = {},
): Promise<{ lethe: Lethe; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-acceptance-'))
  const dataDir = join(folder, 'data')
  // A database that is initialised and migrated, and has no project yet.
  execFileSync('cp', ['-a', inject('dataFolder'), dataDir])
  const child = spawn(process.execPath, [inject('command'), 'serve'], {
    cwd: root,
    env: {
      ...process.env,
      HOST: '127.0.0.1',
      PORT: '0',
      DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      // Long enough to see the countdown, short enough to wait for the fifth attempt.
      ERASURE_RETRY_DELAYS: '3,1,1,1',
      WEBHOOK_PRIVATE_ADDRESSES: 'allow',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const said = await greeting(child)
  const url = /listens on (\S+)/.exec(said)?.[1] ?? ''
  const secretKey = /\bsk_\w+/.exec(said)?.[0] ?? ''
  const lethe: Lethe = {
    url,
    setUpLink: /dashboard\s+(\S+#\S+)/.exec(said)?.[1] ?? '',
    dataDir,
    secretKey,
    publicKey: /\bpk_\w+/.exec(said)?.[0] ?? '',
    async api(method, path, body) {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${secretKey}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, json: await response.json() }
    },
  }
  return {
    lethe,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** What the service prints at its first start, up to its keys. */
function greeting(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', (bytes) => {
      said += bytes
      if (/public key\s+pk_\w+/.test(said)) resolve(said)
    })
    child.once('exit', (code) => reject(new Error(`The service ended with ${code}: ${said}`)))
  })
}

/** Puts a link where the recordings of the only browser lie: the blob store refuses that. */
export async function breakBlobs(lethe: Lethe): Promise<() => Promise<void>> {
  const project = join(lethe.dataDir, 'blobs/blobs/1')
  const [browserId = ''] = await readdir(project)
  const aside = join(lethe.dataDir, 'aside')
  await rename(join(project, browserId), aside)
  await mkdir(join(lethe.dataDir, 'elsewhere'), { recursive: true })
  await symlink(join(lethe.dataDir, 'elsewhere'), join(project, browserId))
  return async () => {
    await rm(join(project, browserId))
    await rename(aside, join(project, browserId))
  }
}

/**
 * Records a visit to the demo shop with the real recorder: clicks, and who it was. The page is open
 * for `milliseconds` at least.
 */
export async function recordVisit(
  browser: Browser,
  lethe: Lethe,
  userId: string | null,
  milliseconds = 0,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<{ browserId: string }> {
  const context = await newWindow(browser, lethe, options)
  const page = await context.newPage()
  const chunks = countChunks(page)
  const start = page.waitForResponse((response) => response.url().includes('/ingest/v1/start'))
  await page.goto(`${lethe.url}/demo?key=${lethe.publicKey}`)
  const { browserId } = await (await start).json()
  await expect.poll(chunks, { timeout: 30_000 }).toBeGreaterThan(0)
  for (const button of (await page.getByRole('button', { name: 'Add' }).all()).slice(0, 3)) {
    await button.click()
  }
  if (userId !== null) {
    const identified = page.waitForResponse((response) => response.url().includes('/identify'))
    await page.evaluate(`lethe.identify(${JSON.stringify(userId)})`)
    await identified
  }
  const openFor = () => page.evaluate<number>('performance.now()')
  await expect.poll(openFor, { timeout: 30_000 }).toBeGreaterThan(milliseconds)
  const before = chunks()
  await page.getByRole('button', { name: 'Add' }).first().click()
  // The last chunks of a visit wait for half a minute.
  await expect.poll(chunks, { timeout: 60_000 }).toBeGreaterThan(before)
  await context.close()
  return { browserId }
}

function countChunks(page: Page): () => number {
  let count = 0
  page.on('response', (response) => {
    if (response.url().includes('/ingest/v1/chunks') && response.ok()) count++
  })
  return () => count
}

/** Lets the ten minutes of every proof pass. */
export async function ageProofs(lethe: Lethe): Promise<void> {
  const { sql, end } = await databaseOf(lethe)
  await sql`update auth.sign_ins set proven_at = proven_at - interval '11 minutes'`
  await end()
}

/** Whatever deletion waits for its next attempt has its last one at once. */
export async function tryForTheLastTime(lethe: Lethe): Promise<void> {
  const { sql, end } = await databaseOf(lethe)
  await sql`
    update deletion_jobs set attempts = 4, next_attempt_at = app_now()
    where status = 'running' and lease_token is null`
  await sql`select pg_notify(${jobsChannel}, '')`
  await end()
}

function databaseOf({ dataDir }: Lethe) {
  const folder = join(dataDir, 'postgres')
  return connectOne(addressesOf(folder, folder).service)
}
