import { expect } from 'vitest'
import { recordedPage, sessionsOf, test, until, untilRecorded } from './sdk-site.ts'

/* What broke on a page, from a real browser through the real server to the dashboard's player. */

test('errors, requests and clicks are in the player and in the list of sessions', async ({
  lethe,
  site,
  page,
  owner,
}) => {
  const body = '<h1>Shop</h1><button id="dead">Pay</button><input id="name" aria-label="Name">'
  const html = await recordedPage(lethe, body)
  site.set('/', html.replace(/lethe\.init\("([^"]+)"\)/, 'lethe.init("$1", { signals: true })'))
  await page.goto(`${site.url}/`)
  const { sessionId } = await untilRecorded(lethe, page)
  await page.waitForFunction('"lethe_more" in globalThis')
  await page.evaluate(`lethe.identify('signals')`)
  await page.fill('#name', 'Jane Canary')
  await page.evaluate(`void (async () => {
    setTimeout(() => { throw new TypeError('no total for Jane Canary') })
    console.warn('the basket is empty')
    await fetch('/missing?token=canary', { method: 'POST' })
  })()`)
  for (let at = 0; at < 3; at++) await page.click('h1')
  await page.click('#dead')
  const [session] = await until(async () => {
    const sessions = await sessionsOf(lethe, 'signals')
    return sessions?.[0]?.deadClicks ? sessions : undefined
  })
  expect(session).toMatchObject({ errors: 1, failedRequests: 1, rageClicks: 1, deadClicks: 1 })

  await owner.goto(`/projects/1/sessions/${sessionId}`)
  for (const text of [
    'Uncaught TypeError: no total for **** ******',
    'the basket is empty',
    /POST \/missing\?token=\* 404/,
    /Rage click on/,
    /Dead click on/,
  ]) {
    await owner.getByRole('button', { name: text }).first().waitFor({ timeout: 60_000 })
  }
  expect(await owner.locator('body').textContent()).not.toMatch(/Jane Canary|token=canary/)
})
