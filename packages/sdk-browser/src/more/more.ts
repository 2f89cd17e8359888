import type { eventWithTime } from '@rrweb/types'
import type { Options } from '../api.ts'
import type { Masking } from '../masking/preset.ts'
import { setUrlRules } from '../masking/url.ts'
import type { Platform } from '../platform.ts'
import type { Counted } from '../recording/chunk.ts'
import type { Server } from '../request.ts'
import type { Sessions } from '../sessions.ts'
import { watchAssets } from './assets.ts'
import { guard } from './guard.ts'
import { watchSignals } from './signals.ts'
import { watchStart } from './start.ts'

/** What the recording lends to what is loaded where a setting asks for it. */
export interface MoreOptions extends Omit<Options, 'masking'> {
  platform: Platform
  sessions: Sessions
  server: Server
  /** As it is now; nothing while nothing is recorded. */
  masking(): Masking | undefined
  /** Records an event, masked already. False: it was not recorded. */
  add(tag: string, payload: object): boolean
  /** Counts what broke, for the lists of sessions. */
  count(what: Counted): void
  /** What the recording calls a node; below 1 where it does not know it. */
  idOf(node: Node): number
  /** Sends what was held back, and what follows. */
  begin(): void
  /** Takes another snapshot, and lets go of what is held and older than a minute before the last. */
  renew(): void
}

export type FollowMore = typeof followMore
export type Guard = typeof guard

/** Follows what settings ask for beside the page itself, until it is ended. */
export function followMore(options: MoreOptions) {
  setUrlRules(options)
  const signals = watchSignals(options)
  const endStart = watchStart(options)
  const assets = options.assets ? watchAssets(options) : undefined
  return {
    /** An event of the recording, before it is masked. */
    seen(event: eventWithTime) {
      signals.seen(event)
      assets?.seen(event)
    },
    /** Gives the page back as it was. */
    end() {
      signals.end()
      endStart()
      assets?.end()
    },
  }
}

export { guard }
