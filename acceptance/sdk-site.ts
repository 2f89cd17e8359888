import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { expect, inject } from 'vitest'
import { type Site, startSite, until } from '../packages/sdk-browser/test/site.ts'
import { test as base, type Lethe } from './lethe.ts'

export { type Site, until }

/** What the SDK keeps of itself in a browser. */
export interface Identity {
  browserId: string
  sessionId: string
}

/** A page of any browser. */
interface Evaluating {
  evaluate(expression: string): Promise<unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: events of many shapes
export type Event = any

/** `visitor`: a browser profile of its own; `page`: a tab of it. */
export const test = base.extend<{ site: Site; visitor: BrowserContext; page: Page }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  site: async ({}, use) => {
    const { site, stop } = await startSite()
    await use(site)
    await stop()
  },
  visitor: async ({ browser }, use) => {
    const visitor = await browser.newContext()
    await use(visitor)
    await visitor.close()
  },
  page: async ({ visitor }, use) => use(await visitor.newPage()),
})

/** A page with the snippet in its head, as Install shows it. */
export async function recordedPage(lethe: Lethe, body: string, nonce = ''): Promise<string> {
  const file = join(import.meta.dirname, '../packages/sdk-browser/dist/snippet.html')
  const snippet = (await readFile(file, 'utf8'))
    .replaceAll('{{host}}', lethe.url)
    .replaceAll('{{key}}', lethe.publicKey)
    .replaceAll('<script>', nonce ? `<script nonce="${nonce}">` : '<script>')
  const head = `<meta charset="utf-8"><link rel="icon" href="data:,"><title>Shop</title>${snippet}`
  return `<!doctype html><html lang="en"><head>${head}</head><body>${body}</body></html>`
}

/** Whom the page's browser is to the server; nothing while it is nobody. */
export async function identityOf(page: Evaluating): Promise<Identity | undefined> {
  const stored = (await page.evaluate('Object.entries(localStorage)')) as [string, string][]
  const found = stored.find(([name]) => name.startsWith('lethe.pk_'))
  if (!found) return undefined
  const { browserId, sessionId } = JSON.parse(found[1])
  return { browserId, sessionId }
}

/** The events of a session, as the API has them; none where there is no such session. */
export async function eventsOf(lethe: Lethe, sessionId: string, tab?: string): Promise<Event[]> {
  const query = tab === undefined ? '' : `?tab=${tab}`
  const answer = await fetch(`${lethe.url}/v1/sessions/${sessionId}/events${query}`, {
    headers: { authorization: `Bearer ${lethe.secretKey}` },
  })
  const text = await answer.text()
  if (answer.status === 404) return []
  expect(answer.status).toBe(200)
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

export const isSnapshot = (event: Event) => event.type === 2

/** The changes of the page that brought this text; a snapshot that shows it is none. */
export const changesWith = (events: Event[], text: string) =>
  events.filter((event) => event.type === 3 && JSON.stringify(event.data).includes(`"${text}"`))

/** Waits until the page is recorded from its beginning, and returns as whom. */
export async function untilRecorded(lethe: Lethe, page: Evaluating): Promise<Identity> {
  return until(async () => {
    const identity = await identityOf(page)
    if (!identity) return undefined
    const events = await eventsOf(lethe, identity.sessionId)
    return events.some(isSnapshot) ? identity : undefined
  })
}

/** Waits until a text that came into the page stands in the recording of this session. */
export const untilStored = (lethe: Lethe, sessionId: string, text: string) =>
  until(async () => changesWith(await eventsOf(lethe, sessionId), text).length)

/** Puts a text into the page's first paragraph, as a node of its own. */
export const say = (page: Page, text: string) =>
  page.evaluate(`document.querySelector('p').append(${JSON.stringify(text)})`)

/** What the page's own code calls. */
export const call = (page: Page, words: string) => page.evaluate(`void lethe.${words}`)

export const sessionsOf = async (lethe: Lethe, externalId: string) =>
  (await lethe.api('GET', `/v1/persons/${externalId}/sessions`)).json.sessions

/** Plays events to their end in a page of this browser; returns an expression of its `document`. */
export async function replay(
  visitor: BrowserContext,
  events: Event[],
  question: string,
): Promise<unknown> {
  const rrweb = join(createRequire(import.meta.url).resolve('rrweb'), '../rrweb.umd.min.cjs')
  const player = await visitor.newPage()
  await player.addScriptTag({ content: await readFile(rrweb, 'utf8') })
  const shown = await player.evaluate(
    ([recorded, asked]) => {
      // biome-ignore lint/suspicious/noExplicitAny: the player as a global
      const replayer = new (globalThis as any).rrweb.Replayer(recorded, { mouseTail: false })
      replayer.pause(recorded.at(-1).timestamp - recorded[0].timestamp + 1)
      return new Function('document', `return ${asked}`)(replayer.iframe.contentDocument)
    },
    [events, question] as const,
  )
  await player.close()
  return shown
}

/** A public key that works on one origin alone, made as an operator does it. */
export function keyFor(dataDir: string, origin: string): string {
  const made = keysCommand(dataDir, ['create', '--kind', 'public', '--name', 'held', '--json'])
  const { key, text } = JSON.parse(made)
  keysCommand(dataDir, ['origins', key.id, origin])
  return text
}

function keysCommand(dataDir: string, words: string[]): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [inject('command'), 'keys', ...words, '--project', '1'],
    { env: { ...process.env, DATA_DIR: dataDir }, encoding: 'utf8' },
  )
  expect(status, stderr).toBe(0)
  return stdout
}
