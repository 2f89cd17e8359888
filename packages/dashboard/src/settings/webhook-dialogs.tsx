import {
  createWebhook,
  removeWebhook,
  rotateWebhookSecret,
  updateWebhook,
  type Webhook,
  type WebhookEvent,
  webhookEvents,
} from '@lethe/contract/dashboard-webhooks.ts'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useProjectId } from '../api/projects.ts'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ConfirmDialog, DialogDone, DialogForm } from '../design/dialog-form.tsx'
import { CheckboxField, TextField } from '../design/field.tsx'
import { say, sayThen } from '../design/toast.tsx'

const eventTexts: Record<WebhookEvent, { label: string; hint: string }> = {
  'person.deletion.completed': {
    label: 'Deletion completed',
    hint: 'person.deletion.completed',
  },
  'person.deletion.failed': {
    label: 'Deletion failed permanently',
    hint: 'person.deletion.failed',
  },
}

function WebhookFields({
  url,
  events,
  onUrl,
  onEvents,
}: {
  url: string
  events: WebhookEvent[]
  onUrl: (url: string) => void
  onEvents: (events: WebhookEvent[]) => void
}) {
  return (
    <>
      <TextField
        label="URL"
        type="url"
        required
        maxLength={2_000}
        placeholder="https://example.com/hooks/lethe"
        autoComplete="off"
        value={url}
        onChange={(event) => onUrl(event.target.value)}
        className="font-mono text-sm"
      />
      <fieldset className="grid gap-2.5">
        <legend className="mb-1.5 text-sm font-medium">Events</legend>
        {webhookEvents.map((event) => (
          <CheckboxField
            key={event}
            label={eventTexts[event].label}
            hint={<code className="font-mono text-xs">{eventTexts[event].hint}</code>}
            checked={events.includes(event)}
            onChange={({ target }) =>
              onEvents(target.checked ? [...events, event] : events.filter((one) => one !== event))
            }
          />
        ))}
      </fieldset>
    </>
  )
}

export function CreateWebhook({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="New webhook">
      <CreateForm onClose={onClose} />
    </Dialog>
  )
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const projectId = useProjectId()
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<WebhookEvent[]>([...webhookEvents])
  const making = useAction(createWebhook)
  if (making.data) return <NewSecret secret={making.data.secret} onClose={onClose} />
  return (
    <DialogForm
      action="Create webhook"
      doing={making}
      disabledReason={events.length > 0 ? undefined : 'Select at least one event.'}
      onSubmit={() => making.mutate({ params: { projectId }, body: { url, events } })}
      onClose={onClose}
    >
      <WebhookFields url={url} events={events} onUrl={setUrl} onEvents={setEvents} />
    </DialogForm>
  )
}

function NewSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <DialogDone onClose={onClose}>
      <p className="text-pretty">
        Your receiver verifies signatures with this secret. Standard Webhooks libraries accept it as
        is.
      </p>
      <SecretOnce text={secret} label="Copy secret" />
    </DialogDone>
  )
}

export interface OfWebhook {
  of: Webhook
  isOpen: boolean
  onClose: () => void
}

export function EditWebhook({ of: webhook, isOpen, onClose }: OfWebhook) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Edit webhook">
      <EditForm of={webhook} onClose={onClose} />
    </Dialog>
  )
}

function EditForm({ of: webhook, onClose }: Omit<OfWebhook, 'isOpen'>) {
  const projectId = useProjectId()
  const [url, setUrl] = useState(webhook.url)
  const [events, setEvents] = useState(webhook.events)
  const saving = useAction(updateWebhook, sayThen(onClose, 'Webhook saved'))
  return (
    <DialogForm
      action="Save"
      doing={saving}
      disabledReason={events.length > 0 ? undefined : 'Select at least one event.'}
      onSubmit={() =>
        saving.mutate({ params: { projectId, webhookId: webhook.id }, body: { url, events } })
      }
      onClose={onClose}
    >
      <WebhookFields url={url} events={events} onUrl={setUrl} onEvents={setEvents} />
    </DialogForm>
  )
}

export function RotateSecret({ of: webhook, isOpen, onClose }: OfWebhook) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Create new secret">
      <RotateForm of={webhook} onClose={onClose} />
    </Dialog>
  )
}

function RotateForm({ of: webhook, onClose }: Omit<OfWebhook, 'isOpen'>) {
  const projectId = useProjectId()
  const rotating = useAction(rotateWebhookSecret)
  if (rotating.data) return <NewSecret secret={rotating.data.secret} onClose={onClose} />
  return (
    <DialogForm
      action="Create secret"
      doing={rotating}
      onSubmit={() => rotating.mutate({ params: { projectId, webhookId: webhook.id }, body: {} })}
      onClose={onClose}
    >
      <p className="text-pretty">
        Deliveries are signed with both secrets for 24 hours, so that you can replace the secret
        without losing any.
      </p>
    </DialogForm>
  )
}

export function RemoveWebhook({ of: webhook, isOpen, onClose }: OfWebhook) {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const removing = useAction(removeWebhook, () => {
    say('Webhook removed')
    void navigate({ to: '/projects/$projectId/settings/webhooks', params: { projectId } })
  })
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title="Remove this webhook?"
      description="Its deliveries are removed too, including those that were not sent yet."
      action="Remove webhook"
      doing={removing}
      onSubmit={() => removing.mutate({ params: { projectId, webhookId: webhook.id } })}
      onClose={onClose}
    />
  )
}
