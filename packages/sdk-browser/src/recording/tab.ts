import type { Platform } from '../platform.ts'
import { parseJson } from '../storage.ts'
import { now, setClock } from './clock.ts'

const NAME = 'lethe.tab'
const CLOCK = 'lethe.clock'
/** The session of this tab that waits for nothing any more. */
export const STARTED = 'lethe.on'
/** A session, and which assets this tab has put into it. */
export const SENT = 'lethe.assets'

/** One tab of the browser, over page loads: its chunks are numbered through. */
export interface Tab {
  id: string
  number: number
}

/**
 * Takes over the tab's number from the page before. The note is removed while a page has it, for a
 * duplicated tab begins with a copy of the store: it must not number chunks under the same id.
 */
export function claimTab({ tab, random }: Platform): Tab {
  const left = parseJson<Tab>(tab.get(NAME))
  tab.remove(NAME)
  setClock(Number(tab.get(CLOCK)) || 0)
  if (left && /^\w{1,32}$/.test(left.id) && left.number >= 0) return left
  return { id: `t${random()}`.replace(/\W/g, ''), number: 0 }
}

/** Leaves the number for the next page of this tab, and the clock, which goes on from there. */
export function releaseTab(platform: Platform, tab: Tab) {
  platform.tab.set(NAME, JSON.stringify(tab))
  platform.tab.set(CLOCK, `${now()}`)
}
