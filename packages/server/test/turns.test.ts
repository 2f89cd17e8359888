import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { linesOf, takingTurns } from '../src/turns.ts'

test('a client with many requests waits for them, and another waits for at most one of each client', async () => {
  const inTurn = takingTurns(1)
  const done: string[] = []
  let atOnce = 0
  const ask = (whose: string) =>
    inTurn(whose, async () => {
      atOnce += 1
      expect(atOnce).toBe(1)
      await new Promise((resolve) => setImmediate(resolve))
      atOnce -= 1
      done.push(whose)
    })
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'b', 'c'].map(ask))
  expect(done.join('')).toBe('aabcaba')
})

test('a task that fails gives its turn to the next one', async () => {
  const inTurn = takingTurns(1)
  const failing = inTurn('a', async () => Promise.reject(new Error('no')))
  const next = inTurn('a', async () => 'done')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('done')
  expect(await inTurn('b', async () => 'again')).toBe('again')
})

test('a limited number of tasks of each client run at a time, without waiting for other clients', async () => {
  const inLine = linesOf(2)
  const started: string[] = []
  const ends: (() => void)[] = []
  const ask = (whose: string) =>
    inLine(whose, () => {
      started.push(whose)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const all = Promise.all(['a', 'a', 'a', 'b'].map(ask))
  expect(started.join('')).toBe('aab')
  ends[0]?.()
  await expect.poll(() => started.join('')).toBe('aaba')
  for (const end of ends) end()
  await all
})

test('a line in which others wait rests for as long as each task took', async () => {
  const inLine = linesOf(1, true)
  const times: number[] = []
  const ask = () =>
    inLine('a', async () => {
      times.push(performance.now())
      await sleep(20)
      times.push(performance.now())
    })
  await Promise.all([ask(), ask()])
  const [began = 0, ended = 0, nextBegan = 0] = times
  // Timers count in whole milliseconds.
  expect(nextBegan - ended).toBeGreaterThan(ended - began - 2)
})
