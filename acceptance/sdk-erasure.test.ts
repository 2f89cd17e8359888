import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page, Response } from 'playwright-core'
import { expect } from 'vitest'
import type { Lethe } from './lethe.ts'
import {
  call,
  eventsOf,
  type Identity,
  identityOf,
  isSnapshot,
  recordedPage,
  type Site,
  say,
  sessionsOf,
  test,
  until,
  untilRecorded,
  untilStored,
} from './sdk-site.ts'

/* Somebody is erased while their page is open, and goes on being used. */

test.concurrent('recording continues anonymously, and no byte of the erased browser is stored again', async ({
  lethe,
  site,
  page,
}) => {
  const { old, chunks } = await openAs('ada', lethe, site, page)
  await say(page, 'OF-ADA')
  await untilStored(lethe, old.sessionId, 'OF-ADA')
  // What she saw goes from the page too, so that it can only come back from something kept.
  await page.evaluate("document.querySelector('p').replaceChildren()")

  const done = erasing(lethe, 'ada')
  const fresh = await untilSomebodyElse(page, old)
  await done
  await untilRecorded(lethe, page)
  await say(page, 'OF-NOBODY')
  await untilStored(lethe, fresh.sessionId, 'OF-NOBODY')

  const events = await eventsOf(lethe, fresh.sessionId)
  expect(events.slice(0, 2)).toMatchObject([{ type: 4 }, { type: 2 }])
  expect(JSON.stringify(events)).not.toContain('OF-ADA')
  await isGone(lethe, old)
  expect((await lethe.api('GET', '/v1/persons/ada')).status).toBe(404)
  expect(await keptIn(page)).not.toContain(old.browserId)
  expect(await keptIn(page)).not.toContain(old.sessionId)
  // From the first 410 on nothing was even sent for it.
  const ofOld = chunks.filter((response) => response.url().includes(old.browserId))
  expect(ofOld.findIndex((response) => response.status() === 410)).toBe(ofOld.length - 1)
})

test.concurrent('only the next identify() of the application identifies the person again, as a new person', async ({
  lethe,
  site,
  page,
}) => {
  let identified = 0
  page.on('request', (request) => {
    if (request.url().includes('/identify')) identified++
  })
  const { old } = await openAs('bea', lethe, site, page)
  const done = erasing(lethe, 'bea')
  await say(page, 'MORE')
  const fresh = await untilSomebodyElse(page, old)
  await done
  await untilRecorded(lethe, page)
  expect(identified).toBe(1)
  expect((await lethe.api('GET', '/v1/persons/bea')).status).toBe(404)

  await call(page, "identify('bea')")
  await until(async () => (await sessionsOf(lethe, 'bea'))?.length === 1)
  expect((await sessionsOf(lethe, 'bea'))[0].id).toBe(fresh.sessionId)
  await isGone(lethe, old)
})

test.concurrent('what waited offline for the erased browser is thrown away', async ({
  lethe,
  site,
  visitor,
  page,
}) => {
  const { old } = await openAs('cleo', lethe, site, page)
  await visitor.setOffline(true)
  let failed = 0
  page.on('requestfailed', () => failed++)
  await say(page, 'KEPT-OFFLINE')
  await until(() => failed > 1)
  await page.evaluate("document.querySelector('p').replaceChildren()")
  await erasing(lethe, 'cleo')
  await isGone(lethe, old)

  await visitor.setOffline(false)
  const fresh = await untilSomebodyElse(page, old)
  await untilRecorded(lethe, page)
  await say(page, 'BACK')
  await untilStored(lethe, fresh.sessionId, 'BACK')
  expect(JSON.stringify(await eventsOf(lethe, fresh.sessionId))).not.toContain('KEPT-OFFLINE')
  await isGone(lethe, old)
})

test.concurrent('what an earlier page of the tab could not send is thrown away too', async ({
  lethe,
  site,
  page,
}) => {
  const { old, chunks } = await openAs('dora', lethe, site, page)
  await page.route('**/ingest/v1/chunks**', (route) => route.abort())
  // Longer than a beacon may be.
  await page.evaluate("document.querySelector('p').append('UNSENT', 'é'.repeat(80_000))")
  await page.goto('about:blank')
  await erasing(lethe, 'dora')
  await page.unroute('**/ingest/v1/chunks**')
  const before = chunks.length

  await page.goto(`${site.url}/`)
  const fresh = await untilSomebodyElse(page, old)
  await untilRecorded(lethe, page)
  const refused = chunks.slice(before).filter((response) => response.url().includes(old.browserId))
  expect(refused.map((response) => response.status())).toContain(410)
  expect(refused.map((response) => response.status())).not.toContain(200)
  expect(JSON.stringify(await eventsOf(lethe, fresh.sessionId))).not.toContain('UNSENT')
  expect(await keptIn(page)).not.toContain(old.browserId)
  await isGone(lethe, old)
})

test.concurrent('all tabs go on as one new browser', async ({ lethe, site, visitor, page }) => {
  const { old } = await openAs('edith', lethe, site, page)
  const other = await visitor.newPage()
  await other.goto(`${site.url}/`)
  await say(other, 'SECOND-TAB')
  await untilStored(lethe, old.sessionId, 'SECOND-TAB')
  const done = erasing(lethe, 'edith')
  await say(page, 'ONE')
  const fresh = await untilSomebodyElse(page, old)
  await say(other, 'TWO')
  await until(async () => (await eventsOf(lethe, fresh.sessionId)).filter(isSnapshot).length === 2)
  await done
  expect((await lethe.api('GET', `/v1/sessions/${fresh.sessionId}`)).json.tabs).toHaveLength(2)
  await isGone(lethe, old)
})

test.concurrent('kept recordings do not change and are linked to nobody, even when the person comes back', async ({
  lethe,
  site,
  page,
}) => {
  const { old } = await openAs('fay', lethe, site, page)
  await say(page, 'KEPT')
  await untilStored(lethe, old.sessionId, 'KEPT')
  const before = await eventsOf(lethe, old.sessionId)
  const done = erasing(lethe, 'fay', '?keepRecordings=true')
  await say(page, 'AFTERWARDS')
  const fresh = await untilSomebodyElse(page, old)
  await done
  await untilRecorded(lethe, page)
  await call(page, "identify('fay')")
  await until(async () => (await sessionsOf(lethe, 'fay'))?.length === 1)
  expect((await sessionsOf(lethe, 'fay'))[0].id).toBe(fresh.sessionId)
  const kept = await eventsOf(lethe, old.sessionId)
  expect(kept.slice(0, before.length)).toEqual(before)
})

/** A page that is recorded, of somebody who has been identified; and its uploads from then on. */
async function openAs(externalId: string, lethe: Lethe, site: Site, page: Page) {
  const chunks: Response[] = []
  page.on('response', (response) => {
    if (response.url().includes('/ingest/v1/chunks')) chunks.push(response)
  })
  site.set('/', await recordedPage(lethe, '<p></p>'))
  await page.goto(`${site.url}/`)
  const old = await untilRecorded(lethe, page)
  await call(page, `identify('${externalId}')`)
  await until(async () => (await sessionsOf(lethe, externalId))?.length === 1)
  return { old, chunks }
}

/** Requests the erasure, and returns when it is completed. */
async function erasing(lethe: Lethe, externalId: string, query = ''): Promise<void> {
  const { status, json } = await lethe.api('DELETE', `/v1/persons/${externalId}${query}`)
  expect(status).toBe(202)
  await until(async () => {
    const { job } = (await lethe.api('GET', `/v1/deletion-jobs/${json.job.id}`)).json
    expect(job.status).not.toBe('failed')
    return job.status === 'completed'
  })
}

/** The browser that the page is recorded as, when it is no longer the erased one. */
const untilSomebodyElse = (page: Page, old: Identity) =>
  until(async () => {
    const identity = await identityOf(page)
    return identity?.browserId === old.browserId ? undefined : identity
  })

/** Neither the API nor the blob store has anything of it. */
async function isGone(lethe: Lethe, { browserId, sessionId }: Identity): Promise<void> {
  expect((await lethe.api('GET', `/v1/sessions/${sessionId}`)).status).toBe(404)
  const blobs = join(lethe.dataDir, 'blobs/blobs/1')
  expect(existsSync(blobs)).toBe(true)
  expect(existsSync(join(blobs, browserId))).toBe(false)
}

const keptIn = (page: Page) =>
  page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
