import type { Consent } from './api.ts'
import type { Store } from './storage.ts'

/** The name under which a store has the visitor's choice. */
export const CONSENT = 'lethe.consent'

/**
 * What counts at the start of a page. A refusal wins wherever it comes from; an earlier optIn()
 * only answers a question that was still open.
 */
export function decideConsent(
  asked: Consent = 'granted',
  remembered: string | undefined,
  privacyControl?: boolean,
): Consent {
  if (privacyControl || remembered === 'denied') return 'denied'
  return asked === 'pending' && remembered === 'granted' ? 'granted' : asked
}

export const rememberedConsent = (store: Store) => store.get(CONSENT)
