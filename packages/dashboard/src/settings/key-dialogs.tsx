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
import { SecretOnce } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ConfirmDialog, DialogDone, DialogForm } from '../design/dialog-form.tsx'
import { Field, RadioCard, SelectField, TextField } from '../design/field.tsx'
import { sayThen } from '../design/toast.tsx'

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
    <DialogForm
      action="Create key"
      doing={making}
      onSubmit={() => making.mutate({ params: { projectId }, body: { kind, name } })}
      onClose={onClose}
    >
      <fieldset className="grid gap-2.5">
        <legend className="sr-only">Key type</legend>
        <RadioCard
          name="kind"
          title="Secret"
          checked={kind === 'secret'}
          onChange={() => setKind('secret')}
        >
          For your backend: reads, changes and deletes people. Never use it in a page.
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
        hint="Where the key is used, so that you know what stops working when you revoke it."
        value={name}
        onChange={(event) => setName(event.target.value)}
        required
        maxLength={200}
        autoComplete="off"
      />
    </DialogForm>
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
    <DialogDone onClose={onClose}>
      <p>{isPublic ? 'This is your new public key.' : 'This is your new secret key.'}</p>
      <SecretOnce text={text} label="Copy key" />
      {children}
    </DialogDone>
  )
}

const overlaps = [
  { seconds: 0, text: 'None: the old key stops working now' },
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
      description="Creates a new key of the same type and name. Both keys work until the overlap ends, so that nothing fails while you replace them."
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
            : `The old key stops working in ${overlaps.find((one) => one.seconds === seconds)?.text}.`}
        </p>
      </NewKey>
    )
  }
  return (
    <DialogForm
      action="Rotate key"
      doing={rotating}
      onSubmit={() =>
        rotating.mutate({
          params: { projectId, keyId: key.id },
          body: { overlapSeconds: seconds },
        })
      }
      onClose={onClose}
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
    </DialogForm>
  )
}

export function RevokeKey({ of: key, onClose }: OfKey) {
  const projectId = useProjectId()
  const revoking = useAction(
    revokeKey,
    sayThen(onClose, 'Key revoked', 'It stops working within 5 seconds.'),
  )
  return (
    <ConfirmDialog
      isOpen={key !== null}
      title={`Revoke ${key?.name}?`}
      description="It stops working within 5 seconds and can’t be restored. Requests that use it will be rejected."
      action="Revoke key"
      doing={revoking}
      onSubmit={() => key && revoking.mutate({ params: { projectId, keyId: key.id }, body: {} })}
      onClose={onClose}
    />
  )
}

export function OriginsDialog({ of: key, onClose }: OfKey) {
  return (
    <Dialog
      isOpen={key !== null}
      onClose={onClose}
      title="Name and origins"
      description="Pages on these origins can record with this key. This prevents accidental use elsewhere; it does not stop a determined attacker."
    >
      {key && <OriginsForm of={key} onClose={onClose} />}
    </Dialog>
  )
}

function OriginsForm({ of: key, onClose }: { of: DashboardKey; onClose: () => void }) {
  const projectId = useProjectId()
  const [name, setName] = useState(key.name)
  const [text, setText] = useState((key.allowedOrigins ?? []).join('\n'))
  const saving = useAction(updateKey, sayThen(onClose, 'Key saved'))
  const origins = text.split(/\s+/).filter(Boolean)
  return (
    <DialogForm
      action="Save"
      doing={saving}
      onSubmit={() =>
        saving.mutate({
          params: { projectId, keyId: key.id },
          body: { name, allowedOrigins: origins.length > 0 ? origins : null },
        })
      }
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        onChange={(event) => setName(event.target.value)}
        required
        maxLength={200}
        autoComplete="off"
      />
      <Field
        label="Origins"
        hint="One per line, for example https://app.example.com. Leave empty to allow any origin."
      >
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
    </DialogForm>
  )
}
