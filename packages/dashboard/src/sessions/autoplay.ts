import { read } from '../shell/theme.ts'

/* Whether one session follows the other by itself; remembered by this browser. */

const place = 'lethe.autoplay'

export function isAutoplayOn(): boolean {
  return read(place) === 'on'
}

export function switchAutoplay(isOn: boolean): void {
  if (isOn) localStorage.setItem(place, 'on')
  else localStorage.removeItem(place)
}

let awaited: string | undefined

/** The session that was gone on to, which plays as soon as it can. */
export function goOnWith(sessionId: string): void {
  awaited = sessionId
}

/** Whether this is the one; true once. */
export function takesOver(sessionId: string): boolean {
  const isIt = awaited === sessionId
  if (isIt) awaited = undefined
  return isIt
}
