import { setTimeout as sleep } from 'node:timers/promises'
import type { connectOne } from '../sql.ts'

/** A connection outside the pool, which holds locks for as long as it lasts. */
export type Session = Awaited<ReturnType<typeof connectOne>>

/**
 * Every process that uses the database holds a shared lock on `user`, and the service an exclusive
 * one on `service`; `roles` is held while the roles are created. Unlike lock files, they end with
 * the process, however it ends.
 */
export const lock = { class: 0x1e74e, user: 1, service: 2, roles: 3 }

export interface KeptSession {
  /** Runs `work` in the session and ends it. */
  end(work?: (session: Session) => Promise<void>): Promise<void>
}

/** Keeps a session open: when it is lost, calls `open` until that succeeds. */
export async function keepSession(
  open: () => Promise<Session>,
  onFault: (error: Error) => void = () => {},
): Promise<KeptSession> {
  const retryMilliseconds = 1_000
  const ended = new AbortController()
  let renewing: Promise<void> = Promise.resolve()
  let session = watch(await open())

  function watch(opened: Session): Session {
    opened.client.once('end', () => {
      if (!ended.signal.aborted) renewing = renew()
    })
    return opened
  }

  async function renew(): Promise<void> {
    while (!ended.signal.aborted) {
      try {
        session = watch(await open())
        return
      } catch (error) {
        onFault(error as Error)
        await sleep(retryMilliseconds, undefined, ended).catch(() => {})
      }
    }
  }

  return {
    async end(work = async () => {}) {
      ended.abort()
      await renewing
      try {
        await work(session)
      } finally {
        await session.end().catch(() => {})
      }
    },
  }
}
