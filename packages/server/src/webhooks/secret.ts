import { createHmac } from 'node:crypto'

export interface WebhookSecret {
  projectId: number
  webhookId: string
  /** Goes up by one each time the secret is renewed. */
  version: number
}

/**
 * The secret of a webhook as the Standard Webhooks libraries take it. It is derived each time
 * and stored nowhere: the database alone is not enough to sign anything.
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
