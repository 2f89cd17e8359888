import type { Server } from 'node:http'
import type { Socket } from 'node:net'

export interface DepartureLimits {
  /** How long a response may wait for its client, however little that reads. */
  graceSeconds: number
  /** After that, the client must read at this average rate. */
  leastBytesPerSecond: number
}

export const departureLimits: DepartureLimits = { graceSeconds: 30, leastBytesPerSecond: 8_192 }

/** When bytes began to wait for a client, and how many had been written by then. */
interface Waiting {
  sinceMilliseconds: number
  bytesBefore: number
}

/**
 * Ends connections whose clients read too slowly. Watches connections, not responses, so that requests
 * cost nothing more.
 */
export function endSlowReaders(server: Server, limits: DepartureLimits = departureLimits): void {
  const connections = new Map<Socket, Waiting | undefined>()
  const sweepMilliseconds = Math.min(1_000, limits.graceSeconds * 500)
  let sweeping: NodeJS.Timeout | undefined

  function sweep(): void {
    const now = performance.now()
    for (const [socket, waiting] of connections) {
      if (socket.writableLength === 0) connections.set(socket, undefined)
      else if (!waiting) {
        connections.set(socket, { sinceMilliseconds: now, bytesBefore: socket.bytesWritten })
      } else {
        const seconds = (now - waiting.sinceMilliseconds) / 1_000
        const bytes = socket.bytesWritten - waiting.bytesBefore
        if (seconds > limits.graceSeconds + bytes / limits.leastBytesPerSecond) socket.destroy()
      }
    }
  }

  server.on('connection', (socket) => {
    connections.set(socket, undefined)
    sweeping ??= setInterval(sweep, sweepMilliseconds).unref()
    socket.once('close', () => {
      connections.delete(socket)
      if (connections.size > 0) return
      clearInterval(sweeping)
      sweeping = undefined
    })
  })
}
