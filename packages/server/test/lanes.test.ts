import { expect, test } from 'vitest'
import { inLanes } from '../src/lanes.ts'

test('a fault ends the work once what is in progress has ended, and no further item is taken', async () => {
  const taken: number[] = []
  const ended: number[] = []
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const work = inLanes([1, 2, 3, 4, 5, 6], 3, async (item) => {
    taken.push(item)
    if (item === 2) throw new Error('the fault')
    await released
    ended.push(item)
  })
  let isOver = false
  const outcome = work.then(
    () => 'done',
    (error: Error) => error.message,
  )
  void outcome.then(() => {
    isOver = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect({ taken, isOver }).toEqual({ taken: [1, 2, 3], isOver: false })
  release()
  expect(await outcome).toBe('the fault')
  expect({ taken, ended }).toEqual({ taken: [1, 2, 3], ended: [1, 3] })
})

test('no more items than lanes are in progress at a time, and each is processed once', async () => {
  const taken: number[] = []
  let now = 0
  let most = 0
  await inLanes([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
    taken.push(item)
    most = Math.max(most, ++now)
    await new Promise((resolve) => setImmediate(resolve))
    now--
  })
  expect({ taken, most }).toEqual({ taken: [1, 2, 3, 4, 5, 6, 7], most: 3 })
})
