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
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { TextField } from '../design/field.tsx'
import { Panel } from '../design/page.tsx'
import { ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'

export function SecondFactor() {
  const { member } = useMe()
  const [asking, setAsking] = useState<'add' | 'remove' | null>(null)
  const close = () => setAsking(null)
  const isOn = member?.hasSecondFactor ?? false
  return (
    <Panel
      title="Second factor"
      description="A code of an authenticator besides the password: who has only the password stays out."
      actions={isOn ? <Chip tone="ok">On</Chip> : <Chip>Off</Chip>}
    >
      <div className="border-t border-line px-4 py-4">
        {isOn ? (
          <Button look="dangerQuiet" onClick={() => setAsking('remove')}>
            Take it off…
          </Button>
        ) : (
          <Button icon="shield" onClick={() => setAsking('add')}>
            Add a second factor…
          </Button>
        )}
      </div>
      <Dialog isOpen={asking === 'add'} onClose={close} title="Add a second factor">
        <AddForm onClose={close} />
      </Dialog>
      <Dialog isOpen={asking === 'remove'} onClose={close} title="Take the second factor off?">
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
    <form
      onSubmit={(event) => {
        event.preventDefault()
        starting.mutate({ body: { password } })
      }}
      className="grid gap-4"
    >
      <TextField
        label="Your password"
        type="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <ErrorLine error={starting.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={starting.isPending}>
          Go on
        </Button>
      </DialogActions>
    </form>
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
  const confirming = useAction(confirmSecondFactor, () => {
    say('The second factor is on')
    onClose()
  })
  const picture = `data:image/svg+xml,${encodeURIComponent(renderSVG(begun.uri, { border: 2 }))}`
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        confirming.mutate({ body: { code: code.replace(/\s/g, '') } })
      }}
      className="grid gap-4"
    >
      <p>Scan this with your authenticator, or type the secret into it.</p>
      <div className="flex flex-wrap items-center gap-4">
        <img
          src={picture}
          alt="The secret as a QR code; it is written beside it too"
          className="size-40 rounded-lg border border-line bg-white"
        />
        <span className="flex max-w-52 items-center gap-1">
          <code className="font-mono text-sm break-all">{begun.secret}</code>
          <CopyButton text={begun.secret} label="Copy the secret" />
        </span>
      </div>
      <div className="rounded-lg border border-line bg-sunken p-3.5">
        <p className="flex items-center justify-between text-sm font-medium">
          Recovery codes
          <CopyButton text={begun.recoveryCodes.join('\n')} label="Copy the recovery codes" />
        </p>
        <p className="text-sm text-pretty text-muted">
          Each gets you in once, without the authenticator. Shown this once.
        </p>
        <ul className="mt-2 grid grid-cols-2 gap-x-4 font-mono text-sm">
          {begun.recoveryCodes.map((recovery) => (
            <li key={recovery}>{recovery}</li>
          ))}
        </ul>
      </div>
      <TextField
        label="Code of the authenticator"
        hint="So that it is certain that it works before it is asked for."
        autoComplete="one-time-code"
        inputMode="numeric"
        required
        value={code}
        onChange={(event) => setCode(event.target.value)}
        className="font-mono tracking-[0.2em]"
      />
      <ErrorLine error={confirming.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={confirming.isPending}>
          Switch it on
        </Button>
      </DialogActions>
    </form>
  )
}

function RemoveForm({ onClose }: { onClose: () => void }) {
  const [password, setPassword] = useState('')
  const removing = useAction(removeSecondFactor, () => {
    say('The second factor is off')
    onClose()
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        removing.mutate({ body: { password } })
      }}
      className="grid gap-4"
    >
      <TextField
        label="Your password"
        type="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <ErrorLine error={removing.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="danger" isBusy={removing.isPending}>
          Take it off
        </Button>
      </DialogActions>
    </form>
  )
}
