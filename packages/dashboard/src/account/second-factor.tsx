import {
  confirmSecondFactor,
  removeSecondFactor,
  startSecondFactor,
} from '@lethe/contract/dashboard-members.ts'
import { useState } from 'react'
import { renderSVG } from 'uqr'
import { useAction } from '../api/action.ts'
import type { Body } from '../api/call.ts'
import { useMe } from '../api/me.ts'
import { Button } from '../design/button.tsx'
import { Chip } from '../design/chip.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { DialogForm } from '../design/dialog-form.tsx'
import { Panel } from '../design/page.tsx'
import { sayThen } from '../design/toast.tsx'
import { CodeField, CurrentPassword } from '../sign-in/fields.tsx'

export function SecondFactor() {
  const { member } = useMe()
  const [asking, setAsking] = useState<'add' | 'remove' | null>(null)
  const close = () => setAsking(null)
  const isOn = member?.hasSecondFactor ?? false
  return (
    <Panel
      title="Two-factor authentication"
      description="Require an authenticator code as well as your password."
      actions={isOn ? <Chip tone="ok">On</Chip> : <Chip>Off</Chip>}
    >
      <div className="border-t border-line px-4 py-4">
        {isOn ? (
          <Button look="dangerQuiet" onClick={() => setAsking('remove')}>
            Turn off…
          </Button>
        ) : (
          <Button icon="shield" onClick={() => setAsking('add')}>
            Set up two-factor authentication…
          </Button>
        )}
      </div>
      <Dialog isOpen={asking === 'add'} onClose={close} title="Set up two-factor authentication">
        <AddForm onClose={close} />
      </Dialog>
      <Dialog
        isOpen={asking === 'remove'}
        onClose={close}
        title="Turn off two-factor authentication?"
      >
        <RemoveForm onClose={close} />
      </Dialog>
    </Panel>
  )
}

function AddForm({ onClose }: { onClose: () => void }) {
  const [password, setPassword] = useState('')
  const starting = useAction(startSecondFactor)
  if (starting.data) return <ConfirmForm begun={starting.data} onClose={onClose} />
  return (
    <DialogForm
      action="Continue"
      doing={starting}
      onSubmit={() => starting.mutate({ body: { password } })}
      onClose={onClose}
    >
      <CurrentPassword label="Your password" value={password} onChange={setPassword} />
    </DialogForm>
  )
}

function ConfirmForm({
  begun,
  onClose,
}: {
  begun: Body<typeof startSecondFactor>
  onClose: () => void
}) {
  const [code, setCode] = useState('')
  const confirming = useAction(
    confirmSecondFactor,
    sayThen(onClose, 'Two-factor authentication is on'),
  )
  const picture = `data:image/svg+xml,${encodeURIComponent(renderSVG(begun.uri, { border: 2 }))}`
  return (
    <DialogForm
      action="Turn on"
      doing={confirming}
      onSubmit={() => confirming.mutate({ body: { code: code.replace(/\s/g, '') } })}
      onClose={onClose}
    >
      <p>Scan this code with your authenticator app, or enter the secret manually.</p>
      <div className="flex flex-wrap items-center gap-4">
        <img
          src={picture}
          alt="QR code of the secret shown next to it"
          className="size-40 rounded-lg border border-line bg-white"
        />
        <span className="flex max-w-52 items-center gap-1">
          <code className="font-mono text-sm break-all">{begun.secret}</code>
          <CopyButton text={begun.secret} label="Copy secret" />
        </span>
      </div>
      <div className="rounded-lg border border-line bg-sunken p-3.5">
        <p className="flex items-center justify-between text-sm font-medium">
          Recovery codes
          <CopyButton text={begun.recoveryCodes.join('\n')} label="Copy recovery codes" />
        </p>
        <p className="text-sm text-pretty text-muted">
          Each code signs you in once without your authenticator. They are shown only once.
        </p>
        <ul className="mt-2 grid grid-cols-2 gap-x-4 font-mono text-sm">
          {begun.recoveryCodes.map((recovery) => (
            <li key={recovery}>{recovery}</li>
          ))}
        </ul>
      </div>
      <CodeField
        label="Authenticator code"
        hint="Confirms that your authenticator works before codes are required."
        inputMode="numeric"
        value={code}
        onChange={setCode}
      />
    </DialogForm>
  )
}

function RemoveForm({ onClose }: { onClose: () => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const removing = useAction(
    removeSecondFactor,
    sayThen(onClose, 'Two-factor authentication is off'),
  )
  return (
    <DialogForm
      action="Turn off"
      look="danger"
      doing={removing}
      onSubmit={() => removing.mutate({ body: { password, code } })}
      onClose={onClose}
    >
      <CurrentPassword label="Your password" value={password} onChange={setPassword} />
      <CodeField value={code} onChange={setCode} />
    </DialogForm>
  )
}
