/*
 * What the recorder adds to a recording besides rrweb's own events: rrweb custom events (type 5),
 * `{ tag, payload }`, with these tags and payloads. All texts and URLs are masked before they leave
 * the browser, by the same rules as the page; none holds a header, a body or a stack's arguments.
 */
export interface RecordedEvents {
  /** An exception or a rejected promise that nothing handled. */
  'lethe.error': { message: string; source?: string; stack?: string }
  'lethe.console': { level: 'error' | 'warn' | 'info' | 'log' | 'debug'; text: string }
  /** A request of the page. `status` 0: no response. */
  'lethe.request': { method: string; url: string; status: number; milliseconds: number }
  /** `id`: the node's rrweb id. `rage`: several quick clicks. `dead`: a click without effect. */
  'lethe.click': { kind: 'rage' | 'dead'; id: number; clicks?: number }
  /** Added by the server: a chunk is missing here, or a page sent it damaged. */
  'lethe.gap': Record<string, never>
  'lethe.vital': { name: 'LCP' | 'CLS' | 'INP' | 'FCP' | 'TTFB'; value: number }
}

export type RecordedTag = keyof RecordedEvents

/** A request counts as failed from this status on, and without a response. */
export const failedStatus = 400

export function isFailedRequest(status: number): boolean {
  return status === 0 || status >= failedStatus
}
