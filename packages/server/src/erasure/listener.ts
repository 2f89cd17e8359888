import type { Log } from '../log.ts'
import { connectOne, type DbOptions } from '../sql.ts'

const reconnectSeconds = 1

const closeSeconds = 2

/** A connection that says nothing for so long is asked whether it is still there. */
const pingSeconds = 30

/**
 * Calls the function of a channel for each of its notifications, and all of them whenever it begins
 * to listen, as some may have been missed. A connection that breaks is replaced; what is missed
 * meanwhile is found by polling.
 */
export function listen(
  connection: DbOptions['connection'],
  heard: Record<string, () => void>,
  log: Log,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping

  async function listenForEver() {
    while (!signal.aborted) {
      try {
        await listenOnce()
      } catch (error) {
        log.fault('worker.listen', error)
      }
      if (!signal.aborted) await pause(reconnectSeconds, signal)
    }
  }

  /** Returns when the connection ended. */
  async function listenOnce() {
    const { sql, client, end } = await connectOne(connection, 5)
    const ended = new Promise<void>((resolve) => {
      client.on('error', () => resolve())
      client.on('end', resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      // It may have been stopped while the connection was made.
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
      // One that leads to nobody any more may never say its end.
      await Promise.race([end(), pause(closeSeconds, signal)]).catch(() => {})
    }
  }

  const listening = listenForEver()
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
