import {
  createKey,
  type DashboardKey,
  revokeKey,
  rotateKey,
  updateKey,
} from '@lethe/contract/dashboard-projects.ts'
import { type ReactNode, useState } from 'react'
import { useAction } from '../api/action.ts'
import { useProjectId } from '../api/projects.ts'
import { Button } from '../design/button.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { Field, RadioCard, SelectField, TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'

export function CreateKey({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="New key">
      <CreateForm onClose={onClose} />
    </Dialog>
  )
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const projectId = useProjectId()
  const [kind, setKind] = useState<'secret' | 'public'>('secret')
  const [name, setName] = useState('')
  const making = useAction(createKey)
  if (making.data) return <NewKey text={making.data.text} onClose={onClose} />
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        making.mutate({ params: { projectId }, body: { kind, name } })
      }}
      className="grid gap-4"
    >
      <fieldset className="grid gap-2.5">
        <legend className="sr-only">Kind of key</legend>
        <RadioCard
          name="kind"
          title="Secret"
          checked={kind === 'secret'}
          onChange={() => setKind('secret')}
        >
          For your backend: reads, changes and deletes persons. Never in a page.
        </RadioCard>
        <RadioCard
          name="kind"
          title="Public"
          checked={kind === 'public'}
          onChange={() => setKind('public')}
        >
          For your pages: can only record.
        </RadioCard>
      </fieldset>
      <TextField
        label="Name"
        hint="Where it is used, so that you know later what ends with it."
        value={name}
        onChange={(event) => setName(event.target.value)}
        required
        maxLength={200}
        autoComplete="off"
      />
      <ErrorLine error={making.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={making.isPending}>
          Make the key
        </Button>
      </DialogActions>
    </form>
  )
}

function NewKey({
  text,
  onClose,
  children,
}: {
  text: string
  onClose: () => void
  children?: ReactNode
}) {
  const isPublic = text.startsWith('pk_')
  return (
    <div className="grid gap-3">
      <p>{isPublic ? 'This is the new public key.' : 'This is the new secret key.'}</p>
      <SecretOnce text={text} label="Copy the key" />
      {children}
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          I have it
        </Button>
      </DialogActions>
    </div>
  )
}

const overlaps = [
  { seconds: 0, text: 'Not at all: the old key ends now' },
  { seconds: 3_600, text: '1 hour' },
  { seconds: 86_400, text: '1 day' },
  { seconds: 604_800, text: '7 days' },
  { seconds: 2_592_000, text: '30 days' },
]

interface OfKey {
  of: DashboardKey | null
  onClose: () => void
}

export function RotateKey({ of: key, onClose }: OfKey) {
  return (
    <Dialog
      isOpen={key !== null}
      onClose={onClose}
      title={`Rotate ${key?.name}`}
      description="A new key of the same kind and name is made. Both work until the overlap is over, so that nothing fails while you exchange them."
    >
      {key && <RotateForm of={key} onClose={onClose} />}
    </Dialog>
  )
}

function RotateForm({ of: key, onClose }: { of: DashboardKey; onClose: () => void }) {
  const projectId = useProjectId()
  const [seconds, setSeconds] = useState(86_400)
  const rotating = useAction(rotateKey)
  if (rotating.data) {
    return (
      <NewKey text={rotating.data.text} onClose={onClose}>
        <p className="text-sm text-muted">
          {seconds === 0
            ? 'The old key no longer works.'
            : `The old key ends in ${overlaps.find((one) => one.seconds === seconds)?.text}.`}
        </p>
      </NewKey>
    )
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        rotating.mutate({
          params: { projectId, keyId: key.id },
          body: { overlapSeconds: seconds },
        })
      }}
      className="grid gap-4"
    >
      <SelectField
        label="Overlap"
        value={seconds}
        onChange={(event) => setSeconds(Number(event.target.value))}
      >
        {overlaps.map((overlap) => (
          <option key={overlap.seconds} value={overlap.seconds}>
            {overlap.text}
          </option>
        ))}
      </SelectField>
      <ErrorLine error={rotating.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={rotating.isPending}>
          Rotate the key
        </Button>
      </DialogActions>
    </form>
  )
}

export function RevokeKey({ of: key, onClose }: OfKey) {
  const projectId = useProjectId()
  const revoking = useAction(revokeKey, () => {
    say('The key is revoked', 'It stops working within 5 seconds.')
    onClose()
  })
  return (
    <Dialog
      isOpen={key !== null}
      onClose={onClose}
      title={`Revoke ${key?.name}?`}
      description="It stops working within 5 seconds, for good. Whatever uses it is refused from then on."
    >
      <ErrorLine error={revoking.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="danger"
          isBusy={revoking.isPending}
          onClick={() => key && revoking.mutate({ params: { projectId, keyId: key.id }, body: {} })}
        >
          Revoke the key
        </Button>
      </DialogActions>
    </Dialog>
  )
}

export function OriginsDialog({ of: key, onClose }: OfKey) {
  return (
    <Dialog
      isOpen={key !== null}
      onClose={onClose}
      title="Name and origins"
      description="Where the pages are that may record with this key. It keeps others from filling your project by accident; it is no protection against those who want to."
    >
      {key && <OriginsForm of={key} onClose={onClose} />}
    </Dialog>
  )
}

function OriginsForm({ of: key, onClose }: { of: DashboardKey; onClose: () => void }) {
  const projectId = useProjectId()
  const [name, setName] = useState(key.name)
  const [text, setText] = useState((key.allowedOrigins ?? []).join('\n'))
  const saving = useAction(updateKey, () => {
    say('The key was saved')
    onClose()
  })
  const origins = text.split(/\s+/).filter(Boolean)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        saving.mutate({
          params: { projectId, keyId: key.id },
          body: { name, allowedOrigins: origins.length > 0 ? origins : null },
        })
      }}
      className="grid gap-4"
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        required
        maxLength={200}
        autoComplete="off"
      />
      <Field label="Origins" hint="One a line, as in https://app.example.com. None: any origin.">
        {(parts) => (
          <textarea
            {...parts}
            rows={4}
            value={text}
            onChange={(event) => setText(event.target.value)}
            spellCheck={false}
            className="field h-auto py-2 font-mono text-sm"
          />
        )}
      </Field>
      <ErrorLine error={saving.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={saving.isPending}>
          Save
        </Button>
      </DialogActions>
    </form>
  )
}
