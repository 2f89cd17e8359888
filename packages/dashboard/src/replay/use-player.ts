import { useSyncExternalStore } from 'react'
import type { Player, PlayerState } from './player.ts'

/** A part of the player's state; what shows it is rendered again only when that part changes. */
export function usePart<T>(player: Player, part: (state: PlayerState) => T): T {
  return useSyncExternalStore(player.subscribe, () => part(player.state()))
}
