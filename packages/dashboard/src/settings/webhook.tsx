import {
  listDeliveries,
  listWebhooks,
  resendDelivery,
  testWebhook,
  updateWebhook,
  type Webhook,
  type WebhookDelivery,
} from '@lethe/contract/dashboard-webhooks.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useLiveList } from '../api/live-list.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { listing, liveMilliseconds, reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Chip } from '../design/chip.tsx'
import { List } from '../design/list.tsx'
import { Menu, MenuItem, MenuLine } from '../design/menu.tsx'
import { BackLink, Panel, useTitle } from '../design/page.tsx'
import { Awaited, Empty } from '../design/states.tsx'
import { ActionsHead, Cell, Head, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { say } from '../design/toast.tsx'
import { NotFound } from '../shell/not-found.tsx'
import { EditWebhook, RemoveWebhook, RotateSecret } from './webhook-dialogs.tsx'
import { DeliveryChip, eventNames } from './webhooks.tsx'

const from = '/signed-in/projects/$projectId/settings/webhooks/$webhookId'

/** One webhook, and everything that was sent to it. */
export function WebhookPage() {
  useTitle('Webhook')
  const { projectId, webhookId } = useParams({ from })
  const { data, error, refetch } = useQuery({
    ...reading(listWebhooks, { params: { projectId } }),
    refetchInterval: liveMilliseconds,
  })
  const webhook = data?.webhooks.find(({ id }) => id === webhookId)
  if (data && !webhook) return <NotFound what="webhook" />
  return (
    <>
      <BackLink to="/projects/$projectId/settings/webhooks" params={{ projectId }}>
        Webhooks
      </BackLink>
      {webhook ? (
        <>
          <WebhookHead webhook={webhook} />
          <Deliveries />
        </>
      ) : (
        <Awaited
          error={error}
          title="The webhook could not be loaded"
          retry={refetch}
          rows={4}
          isCard
        />
      )}
    </>
  )
}

function WebhookHead({ webhook }: { webhook: Webhook }) {
  const params = useParams({ from })
  const mayWrite = useMay('webhooks.write')
  const reason = mayWrite ? undefined : needsPermission['webhooks.write']
  const [asking, setAsking] = useState<'edit' | 'rotate' | 'remove' | null>(null)
  const close = () => setAsking(null)
  const testing = useAction(testWebhook, () => say('Test sent'), 'The test was not sent')
  const switching = useAction(updateWebhook, undefined, 'The webhook could not be changed')
  return (
    <Panel
      title="Webhook"
      description={<code className="font-mono text-sm break-all">{webhook.url}</code>}
      actions={webhook.isEnabled ? <Chip tone="ok">On</Chip> : <Chip>Off</Chip>}
    >
      <div className="flex flex-wrap items-center justify-between gap-3 border-t border-line px-4 py-3">
        <p className="text-muted">{webhook.events.map((event) => eventNames[event]).join(', ')}</p>
        <div className="flex gap-2">
          <Button
            size="small"
            isBusy={testing.isPending}
            disabledReason={reason}
            onClick={() => testing.mutate({ params, body: {} })}
          >
            Send a test
          </Button>
          {mayWrite && (
            <Menu
              trigger={
                <Button size="small" icon="more">
                  More
                </Button>
              }
            >
              <MenuItem icon="pencil" onClick={() => setAsking('edit')}>
                Edit…
              </MenuItem>
              <MenuItem
                icon={webhook.isEnabled ? 'pause' : 'play'}
                onClick={() =>
                  switching.mutate({ params, body: { isEnabled: !webhook.isEnabled } })
                }
              >
                {webhook.isEnabled ? 'Turn off' : 'Turn on'}
              </MenuItem>
              <MenuItem icon="key" onClick={() => setAsking('rotate')}>
                New secret…
              </MenuItem>
              <MenuLine />
              <MenuItem icon="close" tone="danger" onClick={() => setAsking('remove')}>
                Remove…
              </MenuItem>
            </Menu>
          )}
        </div>
      </div>
      <EditWebhook of={webhook} isOpen={asking === 'edit'} onClose={close} />
      <RotateSecret of={webhook} isOpen={asking === 'rotate'} onClose={close} />
      <RemoveWebhook of={webhook} isOpen={asking === 'remove'} onClose={close} />
    </Panel>
  )
}

function Deliveries() {
  const params = useParams({ from })
  const list = useLiveList(
    listing(listDeliveries, { params, query: {} }),
    (page) => page.deliveries,
  )
  return (
    <Panel
      title="Deliveries"
      description="A resent delivery keeps its ID, so that your receiver can recognize it."
    >
      <div className="border-t border-line">
        <List
          list={list}
          names={['delivery', 'deliveries']}
          empty={
            <Empty icon="webhook" title="No deliveries yet">
              The first delivery is sent when a deletion ends. Send a test to try it now.
            </Empty>
          }
        >
          {(rows) => <DeliveryTable deliveries={rows} />}
        </List>
      </div>
    </Panel>
  )
}

function DeliveryTable({ deliveries }: { deliveries: WebhookDelivery[] }) {
  return (
    <Table label="Deliveries">
      <thead>
        <tr>
          <Head>Event</Head>
          <Head>State</Head>
          <Head from="md">Last response</Head>
          <Head isNumber from="sm">
            Attempts
          </Head>
          <Head from="sm">Sent</Head>
          <ActionsHead />
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} />
        ))}
      </tbody>
    </Table>
  )
}

function DeliveryRow({ delivery }: { delivery: WebhookDelivery }) {
  const params = useParams({ from })
  const mayWrite = useMay('webhooks.write')
  const resending = useAction(
    resendDelivery,
    () => say('Delivery resent'),
    'The delivery could not be resent',
  )
  return (
    <Row>
      <Cell>
        <span className="font-medium">{eventNames[delivery.event]}</span>
        {delivery.jobId && (
          <Link
            to="/projects/$projectId/deletions"
            params={{ projectId: params.projectId }}
            search={{ job: delivery.jobId }}
            className="block w-fit rounded-sm font-mono text-xs text-muted hover:text-accent hover:underline"
          >
            <span className="sr-only">Job </span>
            {delivery.jobId.slice(0, 8)}
          </Link>
        )}
      </Cell>
      <Cell>
        <DeliveryChip state={delivery.state} />
      </Cell>
      <Cell from="md">
        {delivery.lastStatus ?? ''}{' '}
        {delivery.lastErrorCode && (
          <code className="font-mono text-sm text-muted">{delivery.lastErrorCode}</code>
        )}
        {delivery.nextAttemptAt && (
          <span className="block text-sm text-muted">
            next <Time at={delivery.nextAttemptAt} />
          </span>
        )}
      </Cell>
      <Cell isNumber from="sm">
        {delivery.attempts}
      </Cell>
      <Cell from="sm" className="text-muted">
        <Time at={delivery.createdAt} />
      </Cell>
      <Cell className="w-0">
        {mayWrite && (
          <Button
            size="small"
            look="quiet"
            icon="refresh"
            isBusy={resending.isPending}
            aria-label={`Resend: ${eventNames[delivery.event]}, ${delivery.id.slice(0, 8)}`}
            onClick={() =>
              resending.mutate({ params: { ...params, deliveryId: delivery.id }, body: {} })
            }
          >
            <span className="max-sm:sr-only">Resend</span>
          </Button>
        )}
      </Cell>
    </Row>
  )
}
