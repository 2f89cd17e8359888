import { Worker } from 'node:worker_threads'

/** What a thread sends: to which request it belongs, and whether it is the last of it. */
export interface ThreadMessage {
  number: number
  isOver: boolean
}

export interface Thread<Request extends object, Message extends ThreadMessage> {
  /**
   * Sends a request; the thread finds the number to answer to in it. `heard` is called with each
   * message; `failed` once, should the thread end before the last one. What is in `handedOver` is
   * the thread's from then on, instead of copied.
   */
  send(
    request: Request,
    heard: (message: Message) => void,
    failed: (error: Error) => void,
    handedOver?: ArrayBuffer[],
  ): void
}

/**
 * A thread that is started when first needed, and anew after it ended. It keeps the process as long
 * as it has something to answer.
 */
export function threadOf<Request extends object, Message extends ThreadMessage>(
  module: URL,
): Thread<Request, Message> {
  let thread: Worker | undefined
  let count = 0
  const waiting = new Map<number, { heard(message: Message): void; failed(error: Error): void }>()

  function start(): Worker {
    // With no options of the process, some of which are for its first module alone.
    const worker = new Worker(module, { execArgv: [] })
    worker.on('message', (message: Message) => {
      const one = waiting.get(message.number)
      if (message.isOver) waiting.delete(message.number)
      if (waiting.size === 0) worker.unref()
      one?.heard(message)
    })
    const fail = (error: Error) => {
      if (thread === worker) thread = undefined
      for (const { failed } of waiting.values()) failed(error)
      waiting.clear()
    }
    worker.on('error', fail)
    worker.on('exit', () => fail(new Error('A thread ended before it had answered.')))
    return worker
  }

  return {
    send(request, heard, failed, handedOver = []) {
      thread ??= start()
      const number = count++
      waiting.set(number, { heard, failed })
      thread.ref()
      thread.postMessage({ ...request, number }, handedOver)
    },
  }
}
