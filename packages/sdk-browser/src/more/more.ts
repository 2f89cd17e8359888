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

/** What the optional features get from the recording. */
export interface MoreOptions extends Omit<Options, 'masking'> {
  platform: Platform
  sessions: Sessions
  server: Server
  /** The current masking; undefined while nothing is recorded. */
  masking(): Masking | undefined
  /** Records an event that is already masked. Returns whether it was recorded. */
  add(tag: string, payload: object): boolean
  /** Counts a problem for the list of sessions. */
  count(what: Counted): void
  /** The node's ID in the recording; below 1 if it has none. */
  idOf(node: Node): number
  /** Starts sending: what was held so far, and what follows. */
  begin(): void
  /** Takes another snapshot and drops held events older than about a minute. */
  renew(): void
}

export type FollowMore = typeof followMore
export type Guard = typeof guard

/** Runs the optional features that the options turn on, until `end` is called. */
export function followMore(options: MoreOptions) {
  setUrlRules(options)
  const signals = watchSignals(options)
  const endStart = watchStart(options)
  const assets = options.assets ? watchAssets(options) : undefined
  return {
    /** Receives each recorded event before it is masked. */
    seen(event: eventWithTime) {
      signals.seen(event)
      assets?.seen(event)
    },
    /** Also restores the functions of the page that were wrapped. */
    end() {
      signals.end()
      endStart()
      assets?.end()
    },
  }
}

export { guard }
