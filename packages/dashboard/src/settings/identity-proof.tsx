import {
  addIdentityKey,
  type DashboardProject,
  type IdentityKey,
  type IdentityProofs,
  listIdentityKeys,
  makeIdentifySecret,
  removeIdentifySecret,
  removeIdentityKey,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Chip } from '../design/chip.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ConfirmDialog, DialogDone, DialogForm } from '../design/dialog-form.tsx'
import { Field, SelectField } from '../design/field.tsx'
import { Panel } from '../design/page.tsx'
import { Awaited, ErrorLine } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { say, sayThen } from '../design/toast.tsx'

type Asking = 'make' | 'end older' | 'remove' | 'add key' | null

/** What identify() has to carry, so that nobody passes as somebody else from a browser's console. */
export function IdentityProof({ project }: { project: DashboardProject }) {
  const [asking, setAsking] = useState<Asking>(null)
  const close = () => setAsking(null)
  return (
    <Panel
      title="Identity proof"
      description="With a secret or a public key, identify() requires a token that only your backend can create, so nobody can impersonate another user from a browser console."
      actions={project.needsProof ? <Chip tone="ok">Required</Chip> : <Chip>Not required</Chip>}
    >
      <AcceptedProofs project={project} />
      <Secrets project={project} onAsk={setAsking} />
      {useMay('keys.read') && <PublicKeys project={project} onAsk={setAsking} />}
      <MakeSecret project={project} isOpen={asking === 'make'} onClose={close} />
      <RemoveSecrets
        project={project}
        onlyOlder={asking === 'end older'}
        isOpen={asking === 'remove' || asking === 'end older'}
        onClose={close}
      />
      <AddKey project={project} isOpen={asking === 'add key'} onClose={close} />
    </Panel>
  )
}

const accepted: Record<IdentityProofs, string> = {
  any: 'Tokens and plain hashes',
  tokens: 'Tokens only (they expire)',
  eddsa: 'EdDSA tokens only',
}

function AcceptedProofs({ project }: { project: DashboardProject }) {
  const mayWrite = useMay('projects.write')
  const saving = useAction(updateProject, () => say('Settings saved'))
  return (
    <div className="grid gap-2 border-t border-line px-4 py-4 *:max-w-xl">
      <SelectField
        label="Accepted proofs"
        hint="A plain hash never expires. EdDSA tokens are checked with a public key, so a leak on this side identifies nobody."
        value={project.identityProofs}
        disabled={!mayWrite || saving.isPending}
        onChange={(event) =>
          saving.mutate({
            params: { projectId: project.id },
            body: { identityProofs: event.target.value as IdentityProofs },
          })
        }
      >
        {Object.entries(accepted).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </SelectField>
      <ErrorLine error={saving.error} />
    </div>
  )
}

interface PartProps {
  project: DashboardProject
  onAsk: (asking: Asking) => void
}

function Secrets({ project, onAsk }: PartProps) {
  const reason = useMay('projects.write') ? undefined : needsPermission['projects.write']
  return (
    <div className="flex flex-wrap gap-2 border-t border-line px-4 py-4">
      <Button icon="key" disabledReason={reason} onClick={() => onAsk('make')}>
        {project.hasIdentifySecret ? 'Create new secret…' : 'Create secret…'}
      </Button>
      {project.hasIdentifySecret && (
        <>
          <Button disabledReason={reason} onClick={() => onAsk('end older')}>
            End older secret…
          </Button>
          <Button look="dangerQuiet" disabledReason={reason} onClick={() => onAsk('remove')}>
            Remove secrets…
          </Button>
        </>
      )}
    </div>
  )
}

function PublicKeys({ project, onAsk }: PartProps) {
  const reason = useMay('keys.write') ? undefined : needsPermission['keys.write']
  const [removing, setRemoving] = useState<IdentityKey | null>(null)
  const { data, error, refetch } = useQuery(
    reading(listIdentityKeys, { params: { projectId: project.id } }),
  )
  return (
    <div className="grid gap-3 border-t border-line px-4 py-4">
      {!data && (
        <Awaited error={error} title="Public keys could not be loaded" retry={refetch} rows={1} />
      )}
      {data?.keys.map((key) => (
        <div key={key.id} className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <code className="min-w-0 font-mono text-sm break-all">{key.publicKey}</code>
          <span className="text-sm text-muted">
            Added <Time at={key.createdAt} />
          </span>
          <Button look="dangerQuiet" disabledReason={reason} onClick={() => setRemoving(key)}>
            Remove…
          </Button>
        </div>
      ))}
      <Button
        icon="plus"
        className="justify-self-start"
        disabledReason={reason}
        onClick={() => onAsk('add key')}
      >
        Add public key…
      </Button>
      <RemoveKey project={project} identityKey={removing} onClose={() => setRemoving(null)} />
    </div>
  )
}

interface AskingDialog {
  project: DashboardProject
  isOpen: boolean
  onClose: () => void
}

function MakeSecret({ project, isOpen, onClose }: AskingDialog) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Create identify secret">
      <MakeSecretForm project={project} onClose={onClose} />
    </Dialog>
  )
}

function MakeSecretForm({ project, onClose }: Omit<AskingDialog, 'isOpen'>) {
  const making = useAction(makeIdentifySecret)
  if (making.data) {
    return (
      <DialogDone onClose={onClose}>
        <SecretOnce text={making.data.identifySecret} label="Copy secret" />
      </DialogDone>
    )
  }
  return (
    <DialogForm
      action="Create secret"
      doing={making}
      onSubmit={() => making.mutate({ params: { projectId: project.id }, body: {} })}
      onClose={onClose}
    >
      <p className="text-pretty">
        {project.hasIdentifySecret
          ? 'The current secret keeps working until you end it; any older one stops working.'
          : 'After this, identify() calls without a valid token or hash are ignored. Prepare your backend first: until it sends them, visitors stay anonymous.'}
      </p>
    </DialogForm>
  )
}

/** All secrets, or those that a newer one has followed. */
function RemoveSecrets({
  project,
  onlyOlder,
  isOpen,
  onClose,
}: AskingDialog & { onlyOlder: boolean }) {
  const removing = useAction(
    removeIdentifySecret,
    sayThen(onClose, onlyOlder ? 'Older secret ended' : 'Identify secrets removed'),
  )
  const query = onlyOlder ? { onlyOlder } : {}
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title={onlyOlder ? 'End the older secret?' : 'Remove the identify secrets?'}
      description={
        onlyOlder
          ? 'Tokens and hashes created with it stop working. The newest secret stays.'
          : 'Tokens and hashes created with them stop working. If nothing else is required, identify() is then accepted from any page that has the public key.'
      }
      action={onlyOlder ? 'End older secret' : 'Remove secrets'}
      doing={removing}
      onSubmit={() => removing.mutate({ params: { projectId: project.id }, query })}
      onClose={onClose}
    />
  )
}

function AddKey({ project, isOpen, onClose }: AskingDialog) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Add public key">
      <AddKeyForm project={project} onClose={onClose} />
    </Dialog>
  )
}

function AddKeyForm({ project, onClose }: Omit<AskingDialog, 'isOpen'>) {
  const [publicKey, setPublicKey] = useState('')
  const adding = useAction(addIdentityKey, sayThen(onClose, 'Public key added'))
  return (
    <DialogForm
      action="Add key"
      doing={adding}
      onSubmit={() => adding.mutate({ params: { projectId: project.id }, body: { publicKey } })}
      onClose={onClose}
    >
      {!project.needsProof && (
        <p className="text-pretty">
          After this, identify() calls without a valid token are ignored. Prepare your backend
          first: until it sends tokens, visitors stay anonymous.
        </p>
      )}
      <Field
        label="Public key"
        hint="Ed25519, in PEM or as a JWK. The private key stays in your backend."
      >
        {(parts) => (
          <textarea
            {...parts}
            className="field min-h-32 font-mono text-sm"
            required
            maxLength={2_000}
            spellCheck={false}
            autoComplete="off"
            value={publicKey}
            onChange={(event) => setPublicKey(event.target.value)}
          />
        )}
      </Field>
    </DialogForm>
  )
}

function RemoveKey({
  project,
  identityKey,
  onClose,
}: {
  project: DashboardProject
  identityKey: IdentityKey | null
  onClose: () => void
}) {
  const removing = useAction(removeIdentityKey, sayThen(onClose, 'Public key removed'))
  return (
    <ConfirmDialog
      isOpen={identityKey !== null}
      title="Remove the public key?"
      description="Tokens signed with its private key stop working."
      action="Remove key"
      doing={removing}
      onSubmit={() =>
        identityKey && removing.mutate({ params: { projectId: project.id, keyId: identityKey.id } })
      }
      onClose={onClose}
    />
  )
}
