import {
  addPasskey,
  listPasskeys,
  type Passkey,
  removePasskey,
  startPasskey,
} from '@lethe/contract/dashboard-members.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ConfirmDialog, DialogForm } from '../design/dialog-form.tsx'
import { TextField } from '../design/field.tsx'
import { Panel } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { sayThen } from '../design/toast.tsx'
import { hasPasskeys } from '../sign-in/passkey.tsx'

/** Of a member with two-factor authentication: what can be used instead of a code. */
export function Passkeys() {
  const { data, error, refetch } = useQuery(reading(listPasskeys, {}))
  const [isAdding, setAdding] = useState(false)
  const [removed, setRemoved] = useState<Passkey | null>(null)
  if (!data) {
    return <Awaited error={error} title="Passkeys could not be loaded" retry={refetch} rows={2} />
  }
  return (
    <Panel
      title="Passkeys"
      description="Use a fingerprint, face or security key instead of an authenticator code."
    >
      {data.passkeys.length > 0 && (
        <ul className="border-t border-line">
          {data.passkeys.map((passkey) => (
            <li key={passkey.id} className="flex items-center gap-3 px-4 py-2.5">
              <span className="min-w-0 flex-1">
                <span className="block font-medium wrap-anywhere">{passkey.name}</span>
                <span className="text-sm text-muted">
                  {passkey.lastUsedAt ? (
                    <>
                      Last used <Time at={passkey.lastUsedAt} />
                    </>
                  ) : (
                    'Never used'
                  )}
                </span>
              </span>
              <Button
                look="dangerQuiet"
                size="small"
                aria-label={`Remove passkey ${passkey.name}…`}
                onClick={() => setRemoved(passkey)}
              >
                Remove…
              </Button>
            </li>
          ))}
        </ul>
      )}
      <div className="border-t border-line px-4 py-4">
        <Button
          icon="shield"
          disabledReason={hasPasskeys() ? undefined : 'This browser has no passkeys.'}
          onClick={() => setAdding(true)}
        >
          Add passkey…
        </Button>
      </div>
      <Dialog isOpen={isAdding} onClose={() => setAdding(false)} title="Add passkey">
        <AddForm onClose={() => setAdding(false)} />
      </Dialog>
      <RemoveDialog passkey={removed} onClose={() => setRemoved(null)} />
    </Panel>
  )
}

function AddForm({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('')
  const [isRefused, setRefused] = useState(false)
  const starting = useAction(startPasskey, ({ options }) => void create(options))
  const adding = useAction(addPasskey, sayThen(onClose, 'The passkey was added'))

  async function create(options: Record<string, unknown>) {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as never)
    const credential = await navigator.credentials.create({ publicKey }).catch(() => null)
    setRefused(credential === null)
    if (!credential) return
    const passkey = (credential as PublicKeyCredential).toJSON()
    adding.mutate({ body: { name: name.trim(), passkey: passkey as never } })
  }

  return (
    <DialogForm
      action="Continue"
      doing={starting.isPending || starting.error ? starting : adding}
      onSubmit={() => starting.mutate({ body: {} })}
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="Where it is kept, such as the name of a device or security key."
        required
        maxLength={100}
        pattern=".*\S.*"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      {isRefused && (
        <p role="alert" className="text-sm text-danger">
          The browser created no passkey. Try again, or use another device.
        </p>
      )}
    </DialogForm>
  )
}

function RemoveDialog({ passkey, onClose }: { passkey: Passkey | null; onClose: () => void }) {
  const removing = useAction(removePasskey, sayThen(onClose, 'The passkey was removed'))
  return (
    <ConfirmDialog
      isOpen={passkey !== null}
      title="Remove passkey?"
      description={`You can no longer confirm it’s you with ${passkey?.name}. Authenticator codes keep working.`}
      action="Remove"
      doing={removing}
      onSubmit={() => passkey && removing.mutate({ params: { passkeyId: passkey.id } })}
      onClose={onClose}
    />
  )
}
