import { test as base } from '../fixtures.ts'
import { openWorld, type World } from './world.ts'

/** `world`: the product's processes over a database of this file's own, their steps in our hands. */
export const test = base.extend<{ world: World }>({
  world: [
    async ({ address }, use) => {
      const world = await openWorld(address)
      await use(world)
      await world.close()
    },
    { scope: 'file' },
  ],
})
