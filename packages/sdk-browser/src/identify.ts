import type { Recording } from './recording/recording.ts'
import type { Server } from './request.ts'
import type { Era, Sessions } from './sessions.ts'

/** A call older than this when its browser turns out retired may have come before the erasure. */
const STALE_MILLISECONDS = 10_000

/** One call of the application. It is sent for that call alone, and never again by the SDK. */
export interface IdentifyCall {
  userId: string
  userHash: string | undefined
  calledAt: number
  /** When it was made. */
  era: Era
}

export interface IdentifyOptions {
  server: Server
  sessions: Sessions
  halt(): void
  recording(): Recording | undefined
  record(era: Era): Promise<void>
  leave(): void
  aside(left: Era): void
  retired(browserId: string): void
}

/** Tells the server who is using this browser. */
export function createIdentify(options: IdentifyOptions) {
  const { sessions, recording, leave, aside } = options
  /** In the call itself: another user than before is another browser from here on. */
  const name = (call: IdentifyCall) => {
    const left = sessions.era()
    const named = sessions.name(call.userId)
    call.era = sessions.era()
    if (named === 'another') aside(left)
    // Until the server has said that this browser is theirs, nothing of theirs is sent to it.
    if (named === 'new') recording()?.hold()
  }
  const sendOnce = async (call: IdentifyCall, isRepeated: boolean): Promise<void> => {
    const { retiredAt } = call.era
    if (retiredAt && retiredAt - call.calledAt > STALE_MILLISECONDS) return
    if (retiredAt) name(call)
    const { era } = call
    if (!era.identity) await options.record(era)
    const { identity } = era
    if (!identity) return
    const { userId, userHash } = call
    const { browserId } = identity
    const answer = await options.server.ask('identify', { browserId, userId, userHash })
    if (!answer) return
    const { next, status } = answer
    if (next === 'stop') return options.halt()
    if (next === 'continue' && status < 400) sessions.linked(era)
    if (era !== sessions.era() || next !== 'new_browser') return
    // An erasure came between, and only a new call of the application may name the person again.
    if (status === 410) return options.retired(browserId)
    // The browser is somebody else's already, and this call is to go with a new one.
    if (isRepeated) return
    recording()?.release(false)
    leave()
    name(call)
    await sendOnce(call, true)
  }
  return {
    name,
    send: (call: IdentifyCall) => sendOnce(call, false).finally(() => recording()?.release(true)),
  }
}
