import { getSessionEvents } from '@lethe/contract/dashboard-sessions.ts'
import type { ErrorBody } from '@lethe/contract/errors.ts'
import { pathOf, RequestFailed } from '../api/call.ts'
import type { Player } from './player.ts'

export interface Place {
  projectId: string
  sessionId: string
  tab: string
}

/** Gives the player the recorded events of a tab as they arrive, from a chunk on. */
export async function streamEvents(
  player: Player,
  { projectId, sessionId, tab }: Place,
  fromChunk: number,
  signal: AbortSignal,
): Promise<void> {
  const path = pathOf(getSessionEvents, {
    params: { projectId, sessionId },
    query: { tab, ...(fromChunk > 0 && { fromChunk }) },
  })
  const response = await fetch(path, { credentials: 'same-origin', signal })
  if (!response.ok) throw new RequestFailed(response.status, (await response.json()) as ErrorBody)
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    // The reader may share one buffer between parts; a part of it cannot be handed over.
    const isWhole = value.byteLength === value.buffer.byteLength
    player.feed(isWhole ? value.buffer : value.slice().buffer, fromChunk > 0)
  }
  player.feedEnds()
}
