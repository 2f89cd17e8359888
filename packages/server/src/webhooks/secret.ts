import { createHmac } from 'node:crypto'

export interface WebhookSecret {
  projectId: number
  webhookId: string
  /** Goes up by one each time the secret is made anew. */
  version: number
}

/**
 * The secret of a webhook as the Standard Webhooks libraries take it. It is derived anew each time
 * and stored nowhere: who has the database alone can sign nothing.
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
