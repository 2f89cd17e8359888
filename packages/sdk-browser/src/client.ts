import type { MaskingPreset } from './api.ts'
import { followSessions, type LoadRecorder } from './follow.ts'
import { type IdentifyCall, sendIdentify } from './identify.ts'
import { sharedIdentity } from './identity.ts'
import type { PageEvents } from './page.ts'
import type { Platform } from './platform.ts'
import { createServer } from './request.ts'
import { createSessions } from './sessions.ts'
import { watch } from './watch.ts'

/** An application that identifies on every render is heard once a second. */
const REPEAT_MILLISECONDS = 1_000

export interface ClientOptions {
  key: string
  host: string
  masking: MaskingPreset
  platform: Platform
  loadRecorder: LoadRecorder
  /** Listens to the page; answers how to end that. */
  onPage(events: PageEvents): () => void
}

export type Client = ReturnType<typeof createClient>

/** One page being recorded, from consent to the end. What it asks of the server it asks in order. */
export function createClient(options: ClientOptions) {
  const { platform, onPage } = options
  const shared = sharedIdentity(platform.shared, options.key)
  const server = createServer(platform, options.host, options.key)
  let halted = false
  let order = Promise.resolve()
  let lastCall: { text: string; at: number } | undefined

  const inOrder = (run: () => unknown) => {
    order = order.then(() => (halted ? undefined : run())).then(nothing, nothing)
  }
  const halt = () => {
    halted = true
    endWatch()
    recording()?.stop()
    recording()?.discard()
  }
  const forget = () => {
    halt()
    shared.remove()
  }
  const waiting = () => recording()?.pause('offline')
  const sessions = createSessions({ platform, server, shared, halted: () => halted, halt, waiting })
  const followed = { ...options, server, sessions, inOrder, halt, halted: () => halted }
  const { recording, rotate, recordAgain } = followSessions(followed)

  const identify = async (call: IdentifyCall, isRepeated = false): Promise<void> => {
    if (!sessions.current()) return
    const outcome = await sendIdentify(call, sessions, server, platform, () => halted)
    if (outcome === 'done') sessions.linked()
    if (outcome === 'stop') halt()
    if (outcome === 'retired') await rotate(true)
    if (outcome !== 'another_browser' || isRepeated) return
    await rotate(false)
    await identify(call, true)
  }
  const endWatch = watch({ platform, onPage, sessions, recording, recordAgain, forget })
  recordAgain()

  return {
    identify(userId: string, userHash?: string) {
      const now = platform.now()
      const text = `${userId} ${userHash}`
      const isRepeated = lastCall?.text === text && now - lastCall.at < REPEAT_MILLISECONDS
      if (isRepeated && lastCall && sessions.retiredAt() < lastCall.at) return
      lastCall = { text, at: now }
      inOrder(() => identify({ userId, userHash, calledAt: now }))
    },
    reset() {
      lastCall = undefined
      inOrder(() => rotate(false))
    },
    /** Ends; what was recorded is still sent. */
    stop() {
      halted = true
      endWatch()
      recording()?.finish()
      recording()?.stop()
      recording()?.hide(false)
    },
    /** Ends, and leaves nothing of this browser's ids and of what is unsent. */
    forget,
  }
}

const nothing = () => {}
