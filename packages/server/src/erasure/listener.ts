import type { Log } from '../log.ts'
import { connectOne, type DbOptions } from '../sql.ts'

const reconnectSeconds = 1

const closeSeconds = 2

/** How often a connection is checked for being alive. */
const pingSeconds = 30

/**
 * Calls the function of a channel for each of its notifications, and all functions whenever it
 * starts to listen, as some notifications may have been missed. A broken connection is replaced.
 */
export function listen(
  connection: DbOptions['connection'],
  heard: Record<string, () => void>,
  log: Log,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping

  async function listenAgain() {
    while (!signal.aborted) {
      try {
        await listenOnce()
      } catch (error) {
        log.fault('worker.listen', error)
      }
      if (!signal.aborted) await pause(reconnectSeconds, signal)
    }
  }

  /** Returns when the connection has ended. */
  async function listenOnce() {
    const { sql, client, end } = await connectOne(connection, 5)
    const ended = new Promise<void>((resolve) => {
      client.on('error', () => resolve())
      client.on('end', resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      // It may have been stopped while connecting.
      if (signal.aborted) resolve()
      const ping = () => sql`select 1`.catch(() => resolve())
      const pings = setInterval(ping, pingSeconds * 1_000)
      client.on('end', () => clearInterval(pings))
    })
    try {
      client.on('notification', ({ channel }) => heard[channel]?.())
      for (const channel of Object.keys(heard)) await client.query(`listen ${channel}`)
      for (const call of Object.values(heard)) call()
      await ended
    } finally {
      // A dead connection may never report its end.
      await Promise.race([end(), pause(closeSeconds, signal)]).catch(() => {})
    }
  }

  const listening = listenAgain()
  return {
    async stop() {
      stopping.abort()
      await listening
    },
  }
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1_000)
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}
