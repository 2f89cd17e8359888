import { listen } from './page-natives.ts'

/**
 * Returns a function that runs each callback in its own task. Unlike nested timers, it is not
 * throttled. Calls `fault` if one throws.
 */
export function createTasks(fault: () => void) {
  const { port1, port2 } = new MessageChannel()
  const waiting: (() => void)[] = []
  listen(port1, 'message', () => {
    try {
      waiting.shift()?.()
    } catch {
      fault()
    }
  })
  port1.start()
  return (run: () => void) => {
    waiting.push(run)
    port2.postMessage(0)
  }
}

let tasks: ReturnType<typeof createTasks> | undefined

/** The same for callbacks whose errors can be ignored. */
export const inOwnTask = (run: () => void) => {
  tasks ??= createTasks(() => {})
  tasks(run)
}
