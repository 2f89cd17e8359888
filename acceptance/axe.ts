import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { type Lethe, newWindow } from './lethe.ts'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export interface Screen {
  name: string
  path: string
  /** A text of what is to be looked at; or goes there, and waits until it is there. */
  ready: string | RegExp | ((page: Page) => Promise<unknown>)
}

export const shows = (text: string | RegExp) => (page: Page) =>
  page.getByText(text).filter({ visible: true }).first().waitFor()

/** Where the focus is caught at the ends of what is open, and passed on: nobody rests on them. */
const exclude = [['[data-base-ui-focus-guard]']]

const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/**
 * `LETHE_DEEP=1` asks for each screen at both widths in both color schemes. Else it is looked at in
 * one of the four, the next screen in the next one: nearly all of the time goes into it.
 */
const isDeep = process.env.LETHE_DEEP === '1'

interface Violation {
  id: string
  nodes: { html: string; failureSummary: string }[]
}

/** What axe finds, and whether the page has to be scrolled sideways. */
async function problemsOf(page: Page): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe)
  // Motion is reduced in these windows, so that what comes in stands at once.
  await expect
    .poll(() =>
      page.evaluate('document.getAnimations().some((one) => one.playState === "running")'),
    )
    .toBe(false)
  const found = (await page.evaluate(
    `axe.run(${JSON.stringify({ exclude })}, ${JSON.stringify({
      runOnly: rules,
      // A menu hangs beside the page, and closes as soon as the focus leaves it.
      rules: { region: { enabled: (await page.getByRole('menu').count()) === 0 } },
      resultTypes: ['violations'],
    })}).then((result) => result.violations)`,
  )) as Violation[]
  const problems = found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  )
  const root = 'document.documentElement'
  const overflow = Number(await page.evaluate(`${root}.scrollWidth - ${root}.clientWidth`))
  return overflow > 1 ? [...problems, `wider than the window by ${overflow} pixels`] : problems
}

const looks = [1440, 320].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)

/**
 * Within a page that is loaded, as a link would, but by way of a screen that has nothing of the one
 * before: to load the whole dashboard again takes most of a second.
 */
async function open(page: Page, path: string): Promise<void> {
  if (page.url() === 'about:blank') {
    await page.goto(path)
    return
  }
  await page.evaluate(`history.pushState(null, '', '/nowhere')`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`)
}

/** Each screen is opened again for each check: it may close when the window changes. */
export async function look(page: Page, list: Screen[]): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const [place, { name, path, ready }] of list.entries()) {
    const wait = typeof ready === 'function' ? ready : shows(ready)
    for (const [turn, { width, colorScheme }] of looks.entries()) {
      if (!isDeep && turn !== place % looks.length) continue
      await page.setViewportSize({ width, height: 800 })
      await page.emulateMedia({ colorScheme })
      await open(page, path)
      await wait(page).catch(async (cause) => {
        const text = await page.locator('body').textContent()
        throw new Error(`${name} is not shown, but:\n${text}`, { cause })
      })
      const problems = await problemsOf(page)
      if (problems.length > 0) found[`${name}, ${colorScheme}, ${width} pixels`] = problems
    }
  }
  return found
}

export async function openWindow(browser: Browser, lethe: Lethe, owner?: Page): Promise<Page> {
  const state = owner && { storageState: await owner.context().storageState() }
  const context = await newWindow(browser, lethe, state)
  return context.newPage()
}
