import { setTimeout as sleep } from 'node:timers/promises'

/** Does `work` when it is the turn of `whose`. */
export type InTurn = <T>(whose: string, work: () => Promise<T>) => Promise<T>

/**
 * At most `atOnce` works at a time. Those that wait have their turn by whose they are: somebody who
 * asks for a lot waits for it, and another one waits for one work of each of them.
 */
export function takingTurns(atOnce: number): InTurn {
  const waiting = new Map<string, (() => void)[]>()
  let working = 0

  function wait(whose: string): Promise<void> {
    return new Promise((resolve) => {
      const line = waiting.get(whose)
      if (line) line.push(resolve)
      else waiting.set(whose, [resolve])
    })
  }

  function handOn(): void {
    const first = waiting.entries().next().value
    if (!first) {
      working -= 1
      return
    }
    const [whose, line] = first
    // A caller with more to do goes behind all others.
    waiting.delete(whose)
    if (line.length > 1) waiting.set(whose, line.slice(1))
    line[0]?.()
  }

  return async (whose, work) => {
    if (working < atOnce) working += 1
    else await wait(whose)
    try {
      return await work()
    } finally {
      handOn()
    }
  }
}

/**
 * At most `atOnce` works of each at a time; what is more waits in its line. With `rests`, a line in
 * which others wait rests after each work for as long as the work took.
 */
export function linesOf(atOnce: number, rests = false): InTurn {
  const lines = new Map<string, { working: number; inTurn: InTurn }>()
  return async (whose, work) => {
    const line = lines.get(whose) ?? { working: 0, inTurn: takingTurns(atOnce) }
    lines.set(whose, line)
    line.working += 1
    try {
      return await line.inTurn(whose, async () => {
        const beganAt = performance.now()
        const result = await work()
        if (rests && line.working > atOnce) await sleep(performance.now() - beganAt)
        return result
      })
    } finally {
      line.working -= 1
      if (line.working === 0) lines.delete(whose)
    }
  }
}
