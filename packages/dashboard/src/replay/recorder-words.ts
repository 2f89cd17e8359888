/** Why the recorder paused, stopped or left something out, as it says so itself. */
const reasons: Record<string, Record<string, string>> = {
  'lethe:paused': {
    idle: 'Paused: nobody did anything for five minutes',
    buffer_full: 'Paused: offline, and no room to keep more',
    offline: 'Paused: the session was over, and offline no other could begin',
  },
  'lethe:stopped': {
    page_too_big: 'Recording stopped: the page has too many elements',
    too_many_mutations: 'Recording stopped: the page changes too much',
    snapshot_too_big: 'Recording stopped: the page is too large to be sent',
    too_big: 'Recording stopped: what the page does is too large to be sent',
    refused: 'Recording stopped: the server refused it',
    fault: 'Recording stopped: a fault of the recorder',
  },
  'lethe:dropped': {
    buffer_full: 'missing: offline for too long',
    too_big: 'missing: too large to be sent',
    refused: 'missing: the server refused them',
  },
}

/** In words what an event of the recorder about itself says; undefined where it is none. */
export function recorderWords(tag: string, payload: Record<string, unknown>): string | undefined {
  const ofTag = Object.hasOwn(reasons, tag) ? reasons[tag] : undefined
  const reason = String(payload.reason)
  if (!ofTag || !Object.hasOwn(ofTag, reason)) return undefined
  if (tag !== 'lethe:dropped') return ofTag[reason]
  const count = Number(payload.events)
  return `${Number.isSafeInteger(count) ? count : 'Some'} events ${ofTag[reason]}`
}
