import { setTimeout as sleep } from 'node:timers/promises'

/** Runs `work` when it is the turn of its owner. */
export type InTurn = <T>(owner: string, work: () => Promise<T>) => Promise<T>

/**
 * Runs at most `atOnce` works at a time, round robin over their owners: an owner with a lot of work
 * delays another one by a single work at a time.
 */
export function takingTurns(atOnce: number): InTurn {
  const waiting = new Map<string, (() => void)[]>()
  let working = 0

  function wait(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const line = waiting.get(owner)
      if (line) line.push(resolve)
      else waiting.set(owner, [resolve])
    })
  }

  function handOn(): void {
    const first = waiting.entries().next().value
    if (!first) {
      working -= 1
      return
    }
    const [owner, line] = first
    // An owner with more to do goes behind all others.
    waiting.delete(owner)
    if (line.length > 1) waiting.set(owner, line.slice(1))
    line[0]?.()
  }

  return async (owner, work) => {
    if (working < atOnce) working += 1
    else await wait(owner)
    try {
      return await work()
    } finally {
      handOn()
    }
  }
}

/**
 * Runs at most `atOnce` works of each owner at a time; further ones wait. With `rests`, an owner whose
 * works wait pauses after each of them for as long as it took.
 */
export function linesOf(atOnce: number, rests = false): InTurn {
  const lines = new Map<string, { working: number; inTurn: InTurn }>()
  return async (owner, work) => {
    const line = lines.get(owner) ?? { working: 0, inTurn: takingTurns(atOnce) }
    lines.set(owner, line)
    line.working += 1
    try {
      return await line.inTurn(owner, async () => {
        const beganAt = performance.now()
        const result = await work()
        if (rests && line.working > atOnce) await sleep(performance.now() - beganAt)
        return result
      })
    } finally {
      line.working -= 1
      if (line.working === 0) lines.delete(owner)
    }
  }
}
