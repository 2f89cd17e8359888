import { createHmac } from 'node:crypto'

export interface WebhookSecret {
  projectId: number
  webhookId: string
  /** Increases by one with each new secret. */
  version: number
}

/**
 * The secret of a webhook in the format of the Standard Webhooks libraries. It is derived, not stored,
 * so the database alone is not enough to sign events.
 */
export function webhookSecret(
  key: Buffer,
  { projectId, webhookId, version }: WebhookSecret,
): string {
  const secret = createHmac('sha256', key)
    .update(JSON.stringify(['lethe webhook', projectId, webhookId, version]))
    .digest('base64')
  return `whsec_${secret}`
}
