import type { Platform } from '../platform.ts'
import { readJson } from '../storage.ts'

const NAME = 'lethe.tab'

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
  const left = readJson<Tab>(tab, NAME)
  tab.remove(NAME)
  if (left && /^\w{1,32}$/.test(left.id) && left.number >= 0) return left
  return {
    id: Array.from({ length: 3 }, () => Math.floor(random() * 2 ** 32).toString(36)).join(''),
    number: 0,
  }
}

/** Leaves the number for the next page of this tab. */
export function releaseTab(platform: Platform, tab: Tab) {
  platform.tab.set(NAME, JSON.stringify(tab))
}
