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

/** What differs between day and night and hardly between widths. Most of the time goes into it. */
const rulesOfColors = ['color-contrast', 'link-in-text-block']

/**
 * `LETHE_DEEP=1` asks for all rules at both widths in both color schemes. Else the colors are looked
 * at in the wide window alone, and everything else by day alone.
 */
const isDeep = process.env.LETHE_DEEP === '1'

interface Violation {
  id: string
  nodes: { html: string; failureSummary: string }[]
}

type Asked = 'all' | 'colors' | 'all but colors'

/** What axe finds, and whether the page has to be scrolled sideways. */
async function problemsOf(page: Page, asked: Asked): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe)
  // Motion is reduced in these windows, so that what comes in stands at once.
  await expect
    .poll(() =>
      page.evaluate('document.getAnimations().some((one) => one.playState === "running")'),
    )
    .toBe(false)
  const found = (await page.evaluate(
    `axe.run(${JSON.stringify({ exclude })}, ${JSON.stringify({
      runOnly: asked === 'colors' ? { type: 'rule', values: rulesOfColors } : rules,
      rules: {
        // A menu hangs beside the page, and closes as soon as the focus leaves it.
        region: { enabled: (await page.getByRole('menu').count()) === 0 },
        ...(asked === 'all but colors' && rulesOff(rulesOfColors)),
      },
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

const rulesOff = (ids: string[]) => Object.fromEntries(ids.map((id) => [id, { enabled: false }]))

interface Look {
  width: number
  colorScheme: 'light' | 'dark'
  asked: Asked
}

const wide: Look[] = [
  { width: 1440, colorScheme: 'light', asked: 'all' },
  { width: 1440, colorScheme: 'dark', asked: isDeep ? 'all' : 'colors' },
]
const narrow: Look[] = isDeep
  ? [
      { width: 320, colorScheme: 'light', asked: 'all' },
      { width: 320, colorScheme: 'dark', asked: 'all' },
    ]
  : [{ width: 320, colorScheme: 'light', asked: 'all but colors' }]

/**
 * Each screen is looked at at each width. What is opened by steps is opened at each width, as it may
 * close when the window changes, and the steps may differ.
 */
export async function look(page: Page, list: Screen[]): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {}
  for (const { name, path, ready } of list) {
    const isText = typeof ready !== 'function'
    const wait = isText ? shows(ready) : ready
    for (const looks of [wide, narrow]) {
      const width = looks[0]?.width ?? 0
      await page.setViewportSize({ width, height: 800 })
      if (!isText || looks === wide || isDeep) await page.goto(path)
      await wait(page).catch(async (cause) => {
        const text = await page.locator('body').textContent()
        throw new Error(`${name} is not shown, but:\n${text}`, { cause })
      })
      for (const { colorScheme, asked } of looks) {
        await page.emulateMedia({ colorScheme })
        const problems = await problemsOf(page, asked)
        if (problems.length > 0) found[`${name}, ${colorScheme}, ${width} pixels`] = problems
      }
    }
  }
  return found
}

export async function openWindow(browser: Browser, lethe: Lethe, owner?: Page): Promise<Page> {
  const context = await newWindow(browser, lethe, {
    reducedMotion: 'reduce',
    ...(owner && { storageState: await owner.context().storageState() }),
  })
  return context.newPage()
}
