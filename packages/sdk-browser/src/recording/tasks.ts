/**
 * Answers a way to run things in tasks of their own, one each. Unlike a timer it is not held back
 * when nested. What goes wrong in one is told to `fault`.
 */
export function createTasks(fault: () => void) {
  const { port1, port2 } = new MessageChannel()
  const waiting: (() => void)[] = []
  port1.onmessage = () => {
    try {
      waiting.shift()?.()
    } catch {
      fault()
    }
  }
  return (run: () => void) => {
    waiting.push(run)
    port2.postMessage(0)
  }
}
