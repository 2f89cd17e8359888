import type { ErrorBody } from '@lethe/contract/errors.ts'
import { RequestFailed } from '../api/call.ts'
import type { Player } from './player.ts'

/** Passes the recorded events of a tab to the player as they arrive. */
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
      // The reader may share a buffer between parts, and only a whole buffer can be transferred.
      const isWhole = value.byteLength === value.buffer.byteLength
      player.feed(tab, isWhole ? value.buffer : value.slice().buffer, isAppended)
    }
  } finally {
    // Also after an error: the next try starts from the beginning, and only new events are used.
    player.feedEnds(tab)
  }
}
