import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect } from 'vitest'
import { blockOf } from '../packages/server/test/documents.ts'
import { recordedPage, sessionsOf, test, until, untilRecorded } from './sdk-site.ts'

/* The page that docs/integrate.md describes, in a browser. */

test.concurrent('integrate.md: a page with the snippet and its script is recorded for the user it names', async ({
  lethe,
  site,
  page,
}) => {
  site.set('/', await recordedPage(lethe, `<p>Hello</p>${blockOf('docs/integrate.md', 'html')}`))
  await page.goto(`${site.url}/`)
  const { sessionId } = await untilRecorded(lethe, page)
  const [session] = await until(() => sessionsOf(lethe, 'user-4'))
  expect(session.id).toBe(sessionId)
})

test.concurrent('integrate.md: the program with a bundler records once the visitor agrees', async ({
  lethe,
  site,
  page,
}) => {
  const code = blockOf('docs/integrate.md', 'js browser')
    .replace('pk_…', lethe.publicKey)
    .replace('https://lethe.example.com', lethe.url)
  expect(code).toContain(lethe.publicKey)
  site.set('/page.js', await bundled(code))
  site.set('/', '<!doctype html><title>Shop</title><p>Hello</p><script src="/page.js"></script>')
  await page.goto(`${site.url}/`)
  await untilRecorded(lethe, page)
})

async function bundled(code: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-bundle-'))
  await writeFile(join(folder, 'page.js'), code)
  const index = join(import.meta.dirname, '../packages/sdk-browser/dist/esm/index.js')
  const bundle = await rolldown({
    input: join(folder, 'page.js'),
    resolve: { alias: { '@lethe/sdk-browser': index } },
  })
  const { output } = await bundle.generate({ format: 'iife', codeSplitting: false })
  await bundle.close()
  await rm(folder, { recursive: true })
  return output[0].code
}
