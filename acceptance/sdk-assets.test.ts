import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Browser, Locator } from 'playwright-core'
import { expect } from 'vitest'
import { newCanary } from '../packages/server/test/residue-fixtures.ts'
import type { Lethe } from './lethe.ts'
import {
  call,
  eventsOf,
  recordedPage,
  type Site,
  say,
  sessionsOf,
  test,
  until,
  untilRecorded,
  untilStored,
} from './sdk-site.ts'

/* A recording that needs the page's server no more: images, a font, a style sheet. */

const green = [0, 128, 0, 255]

/** Its bytes hold the canary, so that they are told wherever they are kept. */
const square = (canary: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60"><title>${canary}</title><path d="M0 0h60v60H0z" fill="green"/></svg>`

const boxes = ['image', 'sheet', 'inline']

async function setShop(lethe: Lethe, site: Site, canary: string) {
  const { resolve } = createRequire(import.meta.url)
  const font = resolve('@fontsource-variable/geist/files/geist-latin-wght-normal.woff2')
  site.set('/shop.woff2', await readFile(font), { 'content-type': 'font/woff2' })
  for (const name of boxes) {
    site.set(`/${name}.svg`, square(canary), { 'content-type': 'image/svg+xml' })
  }
  const css = `@font-face{font-family:Shop;src:url(shop.woff2)} span{font:60px Shop,monospace}
    b{display:block;width:60px;height:60px;background:red} #sheet{background:url(sheet.svg)}`
  site.set('/shop.css', css, { 'content-type': 'text/css' })
  const body = `<link rel="stylesheet" href="/shop.css"><span>Wider than it is</span><p></p>
    <img id="image" alt="" src="/image.svg"><b id="sheet"></b>
    <b id="inline" style="background-image:url(/inline.svg)"></b>`
  const page = await recordedPage(lethe, body)
  site.set('/', page.replace(/lethe\.init\("([^"]+)"\)/, 'lethe.init("$1", { assets: true })'))
}

/** The colour in the middle of an element, as it is seen. */
async function colourOf(browser: Browser, element: Locator): Promise<number[]> {
  const picture = (await element.screenshot()).toString('base64')
  const page = await browser.newPage()
  const colour = await page.evaluate(`(async () => {
    const image = new Image()
    image.src = 'data:image/png;base64,${picture}'
    await image.decode()
    const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
    context.drawImage(image, 0, 0)
    return [...context.getImageData(image.width / 2, image.height / 2, 1, 1).data] })()`)
  await page.close()
  return colour as number[]
}

test('the replay shows the page whose server is gone, and an erasure leaves no byte of it', async ({
  lethe,
  site,
  browser,
  page,
  owner,
}) => {
  const canary = newCanary()
  await setShop(lethe, site, canary)
  await page.goto(`${site.url}/`)
  const identity = await untilRecorded(lethe, page)
  await call(page, "identify('gina')")
  const assets = async () =>
    (await eventsOf(lethe, identity.sessionId)).filter(({ data }) => data.tag === 'lethe:asset')
  const uses = async () =>
    (await assets()).filter(({ data }) => !data.payload.data).map(({ data }) => data.payload)
  await until(async () => {
    const used = await uses()
    const drawn = used.filter(({ urls }) => urls)
    return used.some(({ id }) => id) && used.some(({ css }) => css) && drawn.length === 2
  })
  const live = await page.locator('span').boundingBox()
  await say(page, 'LATER')
  await untilStored(lethe, identity.sessionId, 'LATER')
  await page.close()
  site.clear()

  await until(async () => (await sessionsOf(lethe, 'gina'))?.length === 1)
  // One for three images of the same bytes, and the font.
  expect((await assets()).filter(({ data }) => data.payload.data)).toHaveLength(2)
  await owner.goto(`/projects/1/sessions/${identity.sessionId}`)
  const replayed = owner
    .frameLocator('iframe[title="Replay of the session"]')
    .frameLocator('iframe[title="Recorded page"]')
  await replayed.locator('#inline').waitFor()
  // How long it is is known once all of it was read.
  const atEnd = async (name: string) => {
    await owner.getByRole('slider', { name: 'Time' }).press('End')
    return colourOf(browser, replayed.locator(`#${name}`))
  }
  for (const name of boxes) {
    await expect.poll(() => atEnd(name), { timeout: 60_000, message: name }).toEqual(green)
  }
  // In the replay it may be shown smaller; the font decides how long it is to its height.
  const shown = await replayed.locator('span').boundingBox()
  const shape = (box: typeof live) => (box?.width ?? 0) / (box?.height ?? 1)
  expect(shape(shown)).toBeCloseTo(shape(live), 1)

  const { json } = await lethe.api('DELETE', '/v1/persons/gina')
  await until(async () => {
    const { job } = (await lethe.api('GET', `/v1/deletion-jobs/${json.job.id}`)).json
    return job.status === 'completed'
  })
  expect(await assets()).toEqual([])
  const blobs = join(lethe.dataDir, 'blobs/blobs/1')
  expect(existsSync(blobs)).toBe(true)
  expect(existsSync(join(blobs, identity.browserId))).toBe(false)
})
