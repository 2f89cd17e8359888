import { listWebhooks, type Webhook } from '@lethe/contract/dashboard-webhooks.ts'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Chip, type Tone } from '../design/chip.tsx'
import { Panel, useTitle } from '../design/page.tsx'
import { Awaited, Empty } from '../design/states.tsx'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { CreateWebhook } from './webhook-dialogs.tsx'

export const eventNames: Record<string, string> = {
  'person.deletion.completed': 'Deletion completed',
  'person.deletion.failed': 'Deletion failed',
  'webhook.test': 'Test',
}

export const deliveryStates: Record<string, { text: string; tone: Tone }> = {
  pending: { text: 'Waiting', tone: 'warn' },
  delivered: { text: 'Delivered', tone: 'ok' },
  failed: { text: 'Failed', tone: 'danger' },
}

export function Webhooks() {
  useTitle('Webhooks')
  const projectId = useProjectId()
  const mayWrite = useMay('webhooks.write')
  const [isMaking, setMaking] = useState(false)
  const { data, error, refetch } = useQuery({
    ...reading(listWebhooks, { params: { projectId } }),
    refetchInterval: liveMilliseconds,
  })
  const make = (
    <Button
      icon="plus"
      look="primary"
      disabledReason={mayWrite ? undefined : needsPermission['webhooks.write']}
      onClick={() => setMaking(true)}
    >
      New webhook
    </Button>
  )
  return (
    <>
      <Panel
        title="Webhooks"
        description="Get notified when a deletion completes or fails. Deliveries are signed (Standard Webhooks) and retried for 24 hours."
        actions={data && data.webhooks.length > 0 && make}
      >
        <div className="border-t border-line">
          {data ? (
            data.webhooks.length > 0 ? (
              <WebhookTable webhooks={data.webhooks} />
            ) : (
              <Empty icon="webhook" title="No webhooks" actions={make}>
                For example, tell the person who asked that the deletion is done, or alert your team
                when it fails.
              </Empty>
            )
          ) : (
            <Awaited
              error={error}
              title="Webhooks could not be loaded"
              retry={refetch}
              rows={3}
              className="h-7"
            />
          )}
        </div>
      </Panel>
      <CreateWebhook isOpen={isMaking} onClose={() => setMaking(false)} />
    </>
  )
}

function WebhookTable({ webhooks }: { webhooks: Webhook[] }) {
  const projectId = useProjectId()
  return (
    <Table label="Webhooks">
      <thead>
        <tr>
          <Head>URL</Head>
          <Head from="md">Events</Head>
          <Head from="sm">Last delivery</Head>
          <Head>State</Head>
        </tr>
      </thead>
      <tbody>
        {webhooks.map((webhook) => (
          <Row key={webhook.id} leads>
            <Cell className="w-[48%] max-w-0">
              <Link
                data-row
                to="/projects/$projectId/settings/webhooks/$webhookId"
                params={{ projectId, webhookId: webhook.id }}
                className="block truncate rounded-sm font-mono text-sm font-medium -outline-offset-1 group-hover:text-accent"
              >
                {webhook.url}
              </Link>
            </Cell>
            <Cell from="md" className="text-muted">
              {webhook.events.map((event) => eventNames[event]).join(', ')}
            </Cell>
            <Cell from="sm">
              {webhook.lastDeliveryAt && webhook.lastDeliveryState ? (
                <span className="flex flex-wrap items-center gap-x-2">
                  <DeliveryChip state={webhook.lastDeliveryState} />
                  <span className="text-sm text-muted">
                    <Time at={webhook.lastDeliveryAt} as="ago" />
                  </span>
                </span>
              ) : (
                <None />
              )}
            </Cell>
            <Cell>{webhook.isEnabled ? <Chip tone="quiet">On</Chip> : <Chip>Off</Chip>}</Cell>
          </Row>
        ))}
      </tbody>
    </Table>
  )
}

export function DeliveryChip({ state }: { state: 'pending' | 'delivered' | 'failed' }) {
  const { text, tone } = deliveryStates[state] as { text: string; tone: Tone }
  return <Chip tone={tone}>{text}</Chip>
}
