import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { expect } from 'vitest'
import { html, isSnapshot, type Site, says, test, until } from './chromium.ts'
import type { LetheServer } from './lethe-server.ts'

const svg = (name: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><title>${name}</title></svg>`
const image = { 'content-type': 'image/svg+xml' }

async function setFont(site: Site) {
  const { resolve } = createRequire(import.meta.url)
  const file = resolve('@fontsource-variable/geist/files/geist-latin-wght-normal.woff2')
  site.set('/shop.woff2', await readFile(file), { 'content-type': 'font/woff2' })
}

const body = `<style>@font-face{font-family:Shop;src:url(/shop.woff2) format("woff2");font-weight:400}
  @font-face{font-family:Other;src:url(/other.woff2)} p{font-family:Shop}</style>
  <p>Text</p><img id="seen" src="/seen.svg?token=canary" alt="">
  <div data-lethe-block><img src="/blocked.svg" alt=""></div>
  <div data-lethe-mask><img src="/masked.svg" alt=""></div>`

async function shop(lethe: LetheServer, site: Site, options: string) {
  await setFont(site)
  const names = ['seen', 'blocked', 'masked', 'late', 'sheet', 'after', 'inline', 'unused']
  for (const name of [...names, 'hidden', 'hidden-inline', 'same'])
    site.set(`/${name}.svg`, svg(name), image)
  site.set('/', html(lethe, body, options))
}

const assets = (lethe: LetheServer) =>
  lethe
    .events()
    .filter(says('lethe:asset'))
    .map(({ data }) => data.payload)
const bytes = (lethe: LetheServer) => assets(lethe).filter(({ data }) => data)
const text = ({ data }: { data: string }) =>
  Buffer.from(data.split(',')[1] ?? '', 'base64').toString()

test.concurrent('images and fonts that are shown are in the recording, each once a session', async ({
  lethe,
  site,
  page,
}) => {
  await shop(lethe, site, '{ assets: true }')
  const loaded: string[] = []
  await page.goto(`${site.url}/`)
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
  await until(() => assets(lethe).some(({ css }) => css))
  await until(() => assets(lethe).some(({ id }) => id))
  expect(
    bytes(lethe)
      .map(({ data }) => data.slice(0, 15))
      .sort(),
  ).toEqual(['data:font/woff2', 'data:image/svg+'])
  expect(text(bytes(lethe).find(({ data }) => data.includes('svg')))).toContain('seen')
  expect(loaded.filter((path) => /blocked|masked|other/.test(path))).toEqual([])

  await page.evaluate(() => {
    ;(document.getElementById('seen') as HTMLImageElement).src = '/late.svg'
  })
  await until(() => bytes(lethe).length === 3)
  // The next page of the session: what it shows is told, and not sent once more.
  const before = assets(lethe).length
  await page.goto(`${site.url}/?2`)
  await until(() => lethe.events().filter(isSnapshot).length === 2)
  await until(() => assets(lethe).length >= before + 2)
  expect(bytes(lethe)).toHaveLength(3)
  expect(JSON.stringify(lethe.events())).not.toContain('canary')
})

test.concurrent('strict stores none, an image over the limit is left out, and no credentials are sent', async ({
  lethe,
  site,
  page,
}) => {
  await shop(lethe, site, "{ assets: true, masking: 'strict' }")
  await page.goto(`${site.url}/`)
  await page.waitForFunction('"lethe_more" in globalThis')
  await page.waitForTimeout(3_000)
  expect(assets(lethe)).toEqual([])

  site.set('/big.svg', `${svg('big')}<!--${'x'.repeat(260_000)}-->`, image)
  site.set(
    '/',
    html(lethe, '<img src="/big.svg" alt=""><img src="/seen.svg" alt="">', '{ assets: true }'),
  )
  await page.context().addCookies([{ name: 'session', value: 'secret', url: site.url }])
  const cookies: (string | undefined)[] = []
  page.on('request', async (request) => {
    if (request.resourceType() === 'fetch') cookies.push((await request.allHeaders()).cookie)
  })
  await page.goto(`${site.url}/?2`)
  await until(() => assets(lethe).some(({ id }) => id))
  await page.waitForTimeout(1_000)
  expect(bytes(lethe).map(text)).toEqual([svg('seen')])
  expect(cookies.filter(Boolean)).toEqual([])
})

const drawn = `<style>
    .a{background:no-repeat url(/sheet.svg?v=canary)} @media all{.a::after{content:url("/after.svg")}}
    .b{background:url(/unused.svg)} .c{background:url(/hidden.svg)}
    .d{list-style:url(/same.svg?1)} .e{border-image:url(/same.svg?2) 1}</style>
  <p class="a">x</p><p style="background:url('/inline.svg')">x</p>
  <div data-lethe-mask><p class="c">x</p><p style="background:url(/hidden-inline.svg)">x</p></div>
  <ul><li class="d">x</li></ul><p class="e">x</p>`

test.concurrent('images that style sheets draw are in the recording, under the addresses that it has of them', async ({
  lethe,
  site,
  page,
}) => {
  await shop(lethe, site, '{ assets: true }')
  site.set('/', html(lethe, drawn, '{ assets: true }'))
  const loaded: string[] = []
  await page.goto(`${site.url}/`)
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
  const named = () => assets(lethe).filter(({ urls }) => urls)
  await until(() => named().length === 5)
  const nameOf = (name: string) =>
    named().filter(({ key }) => key && text(keyed(lethe, key)).includes(`>${name}<`))
  expect(nameOf('sheet')).toMatchObject([{ urls: [`${site.url}/sheet.svg?v=*`, '/sheet.svg?v=*'] }])
  expect(nameOf('after')).toHaveLength(1)
  expect(nameOf('inline')).toHaveLength(1)
  // Of two that have one address in the recording none is shown.
  expect(nameOf('same')).toHaveLength(1)
  expect(named().find(({ key }) => !key)).toMatchObject({
    urls: expect.arrayContaining(['/same.svg?*']),
  })
  const recorded = JSON.stringify(lethe.events().find(isSnapshot))
  for (const { urls } of named()) expect(recorded).toContain(urls[0])
  expect(loaded.filter((path) => /unused|hidden/.test(path))).toEqual([])
  expect(JSON.stringify(lethe.events())).not.toContain('canary')
})

const keyed = (lethe: LetheServer, key: string) =>
  bytes(lethe).find((each) => each.key === key) ?? { data: '' }

test.concurrent('a project can do without images and fonts', async ({ lethe, site, page }) => {
  lethe.state.settings = { ...lethe.state.settings, assets: false }
  await shop(lethe, site, '{ assets: true }')
  await page.goto(`${site.url}/`)
  await page.waitForFunction('"lethe_more" in globalThis')
  await until(() => lethe.events().some(isSnapshot))
  await page.waitForTimeout(3_000)
  expect(assets(lethe)).toEqual([])
})
