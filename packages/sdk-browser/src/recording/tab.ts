import type { Platform } from '../platform.ts'
import { parseJson } from '../storage.ts'
import { now, setClock } from './clock.ts'

const NAME = 'lethe.tab'
const CLOCK = 'lethe.clock'
/** The session of this tab that is no longer held. */
export const STARTED = 'lethe.on'
/** A session, and the assets that this tab has sent to it. */
export const SENT = 'lethe.assets'

/** A tab of the browser. Its chunks are numbered across page loads. */
export interface Tab {
  id: string
  number: number
}

/**
 * Takes over the tab's number from the previous page. It is removed from the storage, because a
 * duplicated tab starts with a copy of that and must not use the same ID.
 */
export function claimTab({ tab, random }: Platform): Tab {
  const left = parseJson<Tab>(tab.get(NAME))
  tab.remove(NAME)
  setClock(Number(tab.get(CLOCK)) || 0)
  if (left && /^\w{1,32}$/.test(left.id) && left.number >= 0) return left
  return { id: `t${random()}`.replace(/\W/g, ''), number: 0 }
}

/** Stores the number and the clock for the next page of this tab. */
export function releaseTab(platform: Platform, tab: Tab) {
  platform.tab.set(NAME, JSON.stringify(tab))
  platform.tab.set(CLOCK, `${now()}`)
}
