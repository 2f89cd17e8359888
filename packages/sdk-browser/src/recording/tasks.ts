import { listen } from './page-natives.ts'

/**
 * Returns a way to run things in tasks of their own, one each. Unlike a timer it is not held back
 * when nested. What goes wrong in one is told to `fault`.
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

/** The same for what may fail and nothing is lost. */
export const inOwnTask = (run: () => void) => {
  tasks ??= createTasks(() => {})
  tasks(run)
}
