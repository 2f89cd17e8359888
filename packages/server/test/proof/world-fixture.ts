import { test as base } from '../fixtures.ts'
import { openWorld, type World } from './world.ts'

/** `world`: the product with a database for this file. The test controls its steps. */
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
