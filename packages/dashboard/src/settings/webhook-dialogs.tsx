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
import { Button } from '../design/button.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { CheckboxField, TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'

const eventTexts: Record<WebhookEvent, { label: string; hint: string }> = {
  'person.deletion.completed': {
    label: 'A deletion completed',
    hint: 'person.deletion.completed',
  },
  'person.deletion.failed': {
    label: 'A deletion failed for good',
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
        label="Address"
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
    <form
      onSubmit={(event) => {
        event.preventDefault()
        making.mutate({ params: { projectId }, body: { url, events } })
      }}
      className="grid gap-4"
    >
      <WebhookFields url={url} events={events} onUrl={setUrl} onEvents={setEvents} />
      <ErrorLine error={making.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          type="submit"
          look="primary"
          isBusy={making.isPending}
          disabledReason={events.length > 0 ? undefined : 'Choose one event at least.'}
        >
          Make the webhook
        </Button>
      </DialogActions>
    </form>
  )
}

function NewSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <div className="grid gap-3">
      <p className="text-pretty">
        Your receiver checks the signatures with this secret; the libraries of Standard Webhooks
        take it as it is.
      </p>
      <SecretOnce text={secret} label="Copy the secret" />
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          I have it
        </Button>
      </DialogActions>
    </div>
  )
}

export interface OfWebhook {
  of: Webhook
  isOpen: boolean
  onClose: () => void
}

export function EditWebhook({ of: webhook, isOpen, onClose }: OfWebhook) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Edit the webhook">
      <EditForm of={webhook} onClose={onClose} />
    </Dialog>
  )
}

function EditForm({ of: webhook, onClose }: Omit<OfWebhook, 'isOpen'>) {
  const projectId = useProjectId()
  const [url, setUrl] = useState(webhook.url)
  const [events, setEvents] = useState(webhook.events)
  const saving = useAction(updateWebhook, () => {
    say('The webhook was saved')
    onClose()
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        saving.mutate({ params: { projectId, webhookId: webhook.id }, body: { url, events } })
      }}
      className="grid gap-4"
    >
      <WebhookFields url={url} events={events} onUrl={setUrl} onEvents={setEvents} />
      <ErrorLine error={saving.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          type="submit"
          look="primary"
          isBusy={saving.isPending}
          disabledReason={events.length > 0 ? undefined : 'Choose one event at least.'}
        >
          Save
        </Button>
      </DialogActions>
    </form>
  )
}

export function RotateSecret({ of: webhook, isOpen, onClose }: OfWebhook) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Make a new secret">
      <RotateForm of={webhook} onClose={onClose} />
    </Dialog>
  )
}

function RotateForm({ of: webhook, onClose }: Omit<OfWebhook, 'isOpen'>) {
  const projectId = useProjectId()
  const rotating = useAction(rotateWebhookSecret)
  if (rotating.data) return <NewSecret secret={rotating.data.secret} onClose={onClose} />
  return (
    <div className="grid gap-3">
      <p className="text-pretty">
        For 24 hours deliveries are signed with both secrets, so that you can exchange them without
        losing one.
      </p>
      <ErrorLine error={rotating.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          isBusy={rotating.isPending}
          onClick={() =>
            rotating.mutate({ params: { projectId, webhookId: webhook.id }, body: {} })
          }
        >
          Make the secret
        </Button>
      </DialogActions>
    </div>
  )
}

export function RemoveWebhook({ of: webhook, isOpen, onClose }: OfWebhook) {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const removing = useAction(removeWebhook, () => {
    say('The webhook was removed')
    void navigate({ to: '/projects/$projectId/settings/webhooks', params: { projectId } })
  })
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Remove this webhook?"
      description="Its deliveries go with it, those that still wait included."
    >
      <ErrorLine error={removing.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="danger"
          isBusy={removing.isPending}
          onClick={() => removing.mutate({ params: { projectId, webhookId: webhook.id } })}
        >
          Remove the webhook
        </Button>
      </DialogActions>
    </Dialog>
  )
}
