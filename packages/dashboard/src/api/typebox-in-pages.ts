/*
 * Stands in for typebox in the pages' bundle (see vite.config.ts): the contract's modules build
 * schemas that no page looks at, and typebox would be a third of the first load.
 */

export const Type = new Proxy({} as Record<string, () => unknown>, {
  get: () => () => ({ properties: {} }),
})
