import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { test as base } from 'vitest'
import { launch } from './launch.ts'
import { type LetheServer, startLetheServer } from './lethe-server.ts'
import { type Site, startSite } from './site.ts'

export { type Site, until } from './site.ts'

/** `dist` is built before each run; `lethe` is the server; `site` the customer's; `context` a fresh browser profile's window. */
export const test = base.extend<{
  dist: string
  browser: Browser
  lethe: LetheServer
  site: Site
  context: BrowserContext
  page: Page
}>({
  dist: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => use(join(import.meta.dirname, '../dist')),
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
  lethe: async ({ dist }, use) => {
    const server = await startLetheServer(dist)
    await use(server)
    await server.stop()
  },
  site: async ({ lethe: _ }, use) => {
    const { site, stop } = await startSite()
    await use(site)
    await stop()
  },
  context: async ({ browser }, use) => {
    const context = await browser.newContext()
    await use(context)
    await context.close()
  },
  page: async ({ context }, use) => {
    await use(await context.newPage())
  },
})

export const KEY = 'pk_test'

/** A page with the SDK on it; `options` as the page would write them. */
export function html(lethe: LetheServer, body: string, options = '{}') {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>
    <script src="${lethe.url}/sdk/0.1.0/lethe.js"></script>
    <script>lethe.init('${KEY}', ${options})</script></head><body>${body}</body></html>`
}

// biome-ignore lint/suspicious/noExplicitAny: events of many shapes
export const isSnapshot = (event: any) => event.type === 2
// biome-ignore lint/suspicious/noExplicitAny: events of many shapes
export const says = (tag: string) => (event: any) => event.type === 5 && event.data.tag === tag
