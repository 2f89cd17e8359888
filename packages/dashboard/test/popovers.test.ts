import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { launch } from '../../sdk-browser/test/launch.ts'

test('popovers in shadow roots are shown, in those that come later too, and hidden again', async () => {
  const file = join(import.meta.dirname, '../src/replay/popovers.ts')
  const code = stripTypeScriptTypes(await readFile(file, 'utf8'))
  const browser = await launch()
  try {
    const page = await browser.newPage()
    await page.setContent('<div id="first"></div><div id="later"></div>')
    await page.addScriptTag({
      content: `${code}; globalThis.showPopovers = showPopovers`,
      type: 'module',
    })
    const shown = await page.evaluate(`(async () => {
      const fill = (root) => { root.innerHTML = '<p popover="manual" data-lethe-popover>over</p>' }
      const settled = () => new Promise((resolve) => setTimeout(resolve))
      const isShown = ({ shadowRoot }) => shadowRoot.querySelector('p').matches(':popover-open')
      fill(first.attachShadow({ mode: 'open' }))
      showPopovers(document)
      const root = later.attachShadow({ mode: 'open' })
      fill(root)
      await settled()
      const shown = [first, later].map(isShown)
      root.querySelector('p').removeAttribute('data-lethe-popover')
      await settled()
      return [...shown, isShown(later)]
    })()`)
    expect(shown).toEqual([true, true, false])
  } finally {
    await browser.close()
  }
})
