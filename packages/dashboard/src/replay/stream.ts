import type { ErrorBody } from '@lethe/contract/errors.ts'
import { RequestFailed } from '../api/call.ts'
import type { Player } from './player.ts'

/** Gives the player the recorded events of a tab as they arrive. */
export async function streamEvents(
  player: Player,
  tab: number,
  response: Response,
  isAppended: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (!response.ok) throw new RequestFailed(response.status, (await response.json()) as ErrorBody)
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader()
  try {
    for (;;) {
      while (player.isFull()) {
        signal.throwIfAborted()
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      const { done, value } = await reader.read()
      if (done) break
      // The reader may share one buffer between parts; a part of it cannot be handed over.
      const isWhole = value.byteLength === value.buffer.byteLength
      player.feed(tab, isWhole ? value.buffer : value.slice().buffer, isAppended)
    }
  } finally {
    // Also of one that broke off: the next try begins again, and only what is new of it is taken.
    player.feedEnds(tab)
  }
}
