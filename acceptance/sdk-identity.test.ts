import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { Lethe } from './lethe.ts'
import {
  call,
  eventsOf,
  type Identity,
  identityOf,
  recordedPage,
  type Site,
  say,
  sessionsOf,
  test,
  until,
  untilRecorded,
  untilStored,
} from './sdk-site.ts'

/* Two people at one browser, one after the other. */

test.concurrent('sessions of one user hold nothing of the other, with two tabs and a slow network', async ({
  lethe,
  site,
  visitor,
  page,
}) => {
  const ofCarl = await openAs('carl', lethe, site, page)
  const other = await visitor.newPage()
  await other.goto(`${site.url}/`)
  await say(page, 'CARL-HERE')
  await say(other, 'CARL-THERE')
  await untilStored(lethe, ofCarl.sessionId, 'CARL-HERE')
  await untilStored(lethe, ofCarl.sessionId, 'CARL-THERE')

  await slow(visitor)
  // The application signs Dora in: her page, her name, and what she does, in one task.
  await other.evaluate("document.querySelector('p').replaceChildren()")
  await page.evaluate(`
    document.querySelector('p').replaceChildren('DORA-SIGNED-IN')
    lethe.identify('dora')
    document.querySelector('p').append('DORA-AT-ONCE')`)
  await say(page, 'DORA-BEFORE-ANY-ANSWER')
  await say(other, 'DORA-SEEN-TO-BE-ANOTHER')
  await say(other, 'DORA-THERE')
  const ofDora = await until(async () => (await sessionsOf(lethe, 'dora'))?.[0])
  await untilStored(lethe, ofDora.id, 'DORA-THERE')
  await untilStored(lethe, ofDora.id, 'DORA-BEFORE-ANY-ANSWER')

  const carls = JSON.stringify(await eventsOf(lethe, ofCarl.sessionId))
  expect(carls).toContain('CARL-THERE')
  expect(carls).not.toContain('DORA-')
  const doras = await eventsOf(lethe, ofDora.id)
  expect(JSON.stringify(doras)).toContain('DORA-SIGNED-IN')
  expect(JSON.stringify(doras)).not.toContain('CARL-')
  expect(doras.slice(0, 2)).toMatchObject([{ type: 4 }, { type: 2 }])

  await erasing(lethe, 'dora')
  await isGone(lethe, { browserId: ofDora.browserId, sessionId: ofDora.id })
  expect(JSON.stringify(await eventsOf(lethe, ofCarl.sessionId))).toBe(carls)
})

test.concurrent('a page that is left before any response sends nothing to the previous user', async ({
  lethe,
  site,
  visitor,
  page,
}) => {
  const ofEve = await openAs('eve', lethe, site, page)
  await visitor.setOffline(true)
  await page.evaluate(`
    lethe.identify('finn')
    document.querySelector('p').append('FINN-OFFLINE')`)
  await page.goto('about:blank')
  await visitor.setOffline(false)
  site.set('/', await recordedPage(lethe, '<p></p>'))
  await page.goto(`${site.url}/`)
  await call(page, "identify('finn')")
  const ofFinn = await until(async () => (await sessionsOf(lethe, 'finn'))?.[0])
  await say(page, 'FINN-BACK')
  await untilStored(lethe, ofFinn.id, 'FINN-BACK')
  expect(ofFinn.browserId).not.toBe(ofEve.browserId)
  expect(JSON.stringify(await eventsOf(lethe, ofEve.sessionId))).not.toContain('FINN-')
  expect(JSON.stringify(await eventsOf(lethe, ofFinn.id))).toContain('FINN-OFFLINE')
})

test.concurrent('an idle tab switches to the new user too, and so does its next page', async ({
  lethe,
  site,
  visitor,
  page,
}) => {
  const ofGil = await openAs('gil', lethe, site, page)
  const other = await visitor.newPage()
  await other.goto(`${site.url}/`)
  await call(page, "reset(); lethe.identify('hal')")
  const ofHal = await until(async () => (await sessionsOf(lethe, 'hal'))?.[0])
  const tabs = async () => (await lethe.api('GET', `/v1/sessions/${ofHal.id}`)).json.tabs
  await until(async () => (await tabs())?.length === 2)
  await other.reload()
  await say(other, 'HAL-NEXT-PAGE')
  await untilStored(lethe, ofHal.id, 'HAL-NEXT-PAGE')
  expect(ofHal.browserId).not.toBe(ofGil.browserId)
})

async function openAs(externalId: string, lethe: Lethe, site: Site, page: Page): Promise<Identity> {
  site.set('/', await recordedPage(lethe, '<p></p>'))
  await page.goto(`${site.url}/`)
  const identity = await untilRecorded(lethe, page)
  await call(page, `identify('${externalId}')`)
  await until(async () => (await sessionsOf(lethe, externalId))?.length === 1)
  expect(await identityOf(page)).toEqual(identity)
  return identity
}

/** Every request to the server takes two seconds longer. */
const slow = (visitor: BrowserContext) =>
  visitor.route('**/ingest/v1/**', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    await route.continue().catch(() => {})
  })

async function erasing(lethe: Lethe, externalId: string): Promise<void> {
  const { json } = await lethe.api('DELETE', `/v1/persons/${externalId}`)
  await until(async () => {
    const { job } = (await lethe.api('GET', `/v1/deletion-jobs/${json.job.id}`)).json
    return job.status === 'completed'
  })
}

async function isGone(lethe: Lethe, { browserId, sessionId }: Identity): Promise<void> {
  expect((await lethe.api('GET', `/v1/sessions/${sessionId}`)).status).toBe(404)
  const blobs = join(lethe.dataDir, 'blobs/blobs/1')
  expect(existsSync(blobs)).toBe(true)
  expect(existsSync(join(blobs, browserId))).toBe(false)
}
