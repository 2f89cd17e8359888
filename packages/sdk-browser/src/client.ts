import type { MaskingPreset, Options } from './api.ts'
import { rememberedConsent } from './consent.ts'
import { followSessions, type LoadMore, type LoadRecorder } from './follow.ts'
import { createIdentify } from './identify.ts'
import { sharedIdentity } from './identity.ts'
import type { Platform } from './platform.ts'
import { createServer } from './request.ts'
import { createSessions } from './sessions.ts'

/** An application may identify on every render: it is repeated once a second at most. */
const REPEAT_MILLISECONDS = 1_000

export interface ClientOptions extends Options {
  key: string
  host: string
  masking: MaskingPreset
  platform: Platform
  loadRecorder: LoadRecorder
  loadMore: LoadMore
  page: { isStarted?: boolean }
}

export type Client = ReturnType<typeof createClient>

/** One page being recorded, from consent to the end. What it asks of the server it asks in order. */
export function createClient(options: ClientOptions) {
  const { platform } = options
  let halted = false
  const shared = sharedIdentity(platform.shared, options.key)
  const server = createServer(options, () => halted)
  let order = Promise.resolve()
  let lastCall: string | undefined
  let lastCallAt = 0

  const inOrder = (run: () => unknown) => {
    order = order.then(() => (halted ? undefined : run())).then(nothing, nothing)
  }
  const halt = () => {
    halted = true
    end()
    recording()?.discard()
  }
  const forget = () => {
    halt()
    shared.remove()
  }
  const isDenied = () => rememberedConsent(platform.shared) === 'denied'
  const waiting = () => recording()?.pause('offline')
  const asked = { ...options, server, shared, halted: () => halted, halt, waiting }
  const sessions = createSessions(asked)
  const followed = { ...asked, sessions, inOrder, forget, isDenied }
  const follow = followSessions(followed)
  const { recording, recordAgain, leave, still, end } = follow
  const { name, send } = createIdentify({ ...followed, ...follow })
  recordAgain()

  return {
    identify(userId: string, userHash?: string) {
      still()
      const now = platform.now()
      const call = { userId, userHash, calledAt: now, era: sessions.era() }
      name(call)
      const text = `${call.era.id} ${userId} ${userHash}`
      if (lastCall === text && now - lastCallAt < REPEAT_MILLISECONDS) return
      lastCall = text
      lastCallAt = now
      inOrder(() => send(call))
    },
    /** Records from here on, and sends what was held back. */
    start() {
      recordAgain()
      recording()?.start()
    },
    current: sessions.current,
    reset() {
      still()
      leave()
    },
    /** Ends; what was recorded is still sent. */
    stop() {
      halted = true
      recording()?.finish()
      end()
      recording()?.hide(false)
    },
    /** Asks on when the recording has ended; nothing is kept to do so on another page. */
    erase() {
      const browserId = sessions.current()?.browserId
      void createServer(options, nothing).ask('withdraw', { browserId })
    },
    /** Ends, and leaves nothing of this browser's ids and of what is unsent. */
    forget,
  }
}

const nothing = () => {}
