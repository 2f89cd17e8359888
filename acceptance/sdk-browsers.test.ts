import { existsSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { type Driven, type Driver, firefox, reasonToSkip, webkit } from './drivers.ts'
import {
  test as base,
  changesWith,
  eventsOf,
  identityOf,
  isSnapshot,
  keyFor,
  recordedPage,
  sessionsOf,
  until,
  untilRecorded,
} from './sdk-site.ts'

/* The browsers Debian has beside Chromium. What is tried here is what differs between browsers. */

for (const driver of [firefox, webkit]) smokeIn(driver)

function smokeIn(driver: Driver): void {
  const reason = reasonToSkip(driver)
  if (reason !== undefined) {
    base.skip(`skipped: ${reason}`, () => {})
    return
  }
  const test = base.extend<{ window: Driven }>({
    window: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
      async ({}, use) => {
        const window = await driver.launch()
        await use(window)
        await window.close()
      },
      { scope: 'file' },
    ],
  })

  describe(`in ${driver.name}`, () => {
    test('a visit is recorded, linked to its person, and erased completely', async ({
      lethe,
      window,
    }) => {
      await window.open(`${lethe.url}/demo?key=${lethe.publicKey}`)
      const old = await untilRecorded(lethe, window)
      await window.click('[aria-label="Add Sourdough"]')
      await window.click('#identify')
      await until(async () => (await sessionsOf(lethe, 'ada'))?.length === 1)
      expect((await sessionsOf(lethe, 'ada'))[0]).toMatchObject({
        id: old.sessionId,
        beforeIdentification: true,
      })
      await until(async () => changesWith(await eventsOf(lethe, old.sessionId), '1').length)
      const events = await eventsOf(lethe, old.sessionId)
      expect(JSON.stringify(events.find(isSnapshot))).toContain('Fennel & Fig')

      await window.open(`${lethe.url}/demo?key=${lethe.publicKey}&again`)
      await until(
        async () => (await eventsOf(lethe, old.sessionId)).filter(isSnapshot).length === 2,
      )
      expect(await identityOf(window)).toMatchObject(old)

      const { json } = await lethe.api('DELETE', '/v1/persons/ada')
      await window.click('[aria-label="Add Sourdough"]')
      await until(async () => {
        const { job } = (await lethe.api('GET', `/v1/deletion-jobs/${json.job.id}`)).json
        return job.status === 'completed'
      })
      await until(async () => (await identityOf(window))?.browserId !== old.browserId)
      const fresh = await untilRecorded(lethe, window)
      expect(fresh.browserId).not.toBe(old.browserId)
      expect((await lethe.api('GET', '/v1/persons/ada')).status).toBe(404)
      expect((await lethe.api('GET', `/v1/sessions/${old.sessionId}`)).status).toBe(404)
      const blobs = join(lethe.dataDir, 'blobs/blobs/1')
      expect([existsSync(blobs), existsSync(join(blobs, old.browserId))]).toEqual([true, false])
    })

    test('a page that hides its origin delivers its last events, with a key limited to that origin', async ({
      lethe,
      site,
      window,
    }) => {
      // Held to that origin, which these browsers hide in a beacon where the page asks for it.
      const relay = await startRelay(lethe.url)
      const key = keyFor(lethe.dataDir, site.url)
      const html = (await recordedPage({ ...lethe, url: relay.url }, '<p>hello</p>')).replaceAll(
        lethe.publicKey,
        key,
      )
      site.set('/', html, { 'referrer-policy': 'no-referrer' })
      await window.open(`${site.url}/`)
      const { sessionId } = await untilRecorded(lethe, window)
      await window.evaluate("document.querySelector('p').append('LAST')")
      await window.open('about:blank')
      await until(async () => changesWith(await eventsOf(lethe, sessionId), 'LAST').length)
      expect(changesWith(await eventsOf(lethe, sessionId), 'LAST')).toHaveLength(1)
      expect(relay.origins).toContain('null')
      await relay.stop()
    })
  })
}

/** Passes requests on, and keeps where they say they come from, which no driver tells. */
async function startRelay(url: string) {
  const origins: (string | undefined)[] = []
  const server = createServer((from, back) => {
    if (from.url?.startsWith('/ingest/')) origins.push(from.headers.origin)
    const on = request(url + from.url, { method: from.method, headers: from.headers }, (answer) => {
      back.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(back)
    })
    from.pipe(on)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    origins,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
