import { expect } from 'vitest'
import { byDepth } from '../../server/test/proof/deep.ts'
import { html, isSnapshot, test, until } from './chromium.ts'
import { change, kinds, playerScript, replayed, treeOf, ways } from './trees.ts'

/** Each seed has a part of the page of its own. */
const seeds = Array.from({ length: byDepth(2, 6) }, (_, at) => at + 1)

test.for(Object.entries(kinds))(
  'a page that changes at random is replayed as it was: %s',
  async ([name, chosen], { lethe, site, page, context }) => {
    site.set(
      '/',
      html(lethe, '<main><p>first</p></main>'.repeat(seeds.length), "{ masking: 'open' }"),
    )
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    const mains = `[...document.querySelectorAll('main')]`
    await page.evaluate(`(async () => {
      for (const seed of ${JSON.stringify(seeds)})
        await (${change})(${mains}[seed - 1], seed, 40, ${JSON.stringify(chosen)})
      // Frames are recorded when they have loaded.
      await new Promise((resolve) => setTimeout(resolve, 200))
      document.body.title = 'the end'
    })()`)
    const real = await page.evaluate(`${mains}.map(${treeOf})`)
    await until(() => JSON.stringify(lethe.events()).includes('"title":"the end"'))

    const player = await context.newPage()
    await player.addScriptTag({ content: await playerScript() })
    for (const way of ways) {
      // In one go it changes sheets before it has made them.
      if (way === 'at once' && name === 'adopted style sheets') continue
      expect(await replayed(player, lethe.events(), way, 'main'), way).toEqual(real)
    }
  },
)

test('a node that is wrapped in the same task as what is around it is replayed', async ({
  lethe,
  site,
  page,
  context,
}) => {
  site.set(
    '/',
    html(lethe, '<main><section><p>wrapped</p></section></main>', "{ masking: 'open' }"),
  )
  await page.goto(`${site.url}/`)
  await until(() => lethe.events().some(isSnapshot))
  const real = await page.evaluate(`(() => {
    for (const name of ['p', 'section']) {
      const one = document.querySelector(name)
      const around = document.createElement('div')
      one.replaceWith(around)
      around.append(one)
    }
    document.body.title = 'the end'
    return (${treeOf})(document.querySelector('main'))
  })()`)
  await until(() => JSON.stringify(lethe.events()).includes('"title":"the end"'))
  const player = await context.newPage()
  await player.addScriptTag({ content: await playerScript() })
  expect(await replayed(player, lethe.events(), 'in steps', 'main')).toEqual([real])
})
