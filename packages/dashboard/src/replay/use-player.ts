import { useSyncExternalStore } from 'react'
import type { Player, PlayerState } from './player.ts'

/** Returns a part of the player's state. A component renders again only when that part changes. */
export function usePart<T>(player: Player, part: (state: PlayerState) => T): T {
  return useSyncExternalStore(player.subscribe, () => part(player.state()))
}
