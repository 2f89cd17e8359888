import {
  inviteMember,
  type Member,
  makeResetLink,
  type Role,
  removeMember,
  updateMember,
} from '@lethe/contract/dashboard-members.ts'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useMe } from '../api/me.ts'
import { Button } from '../design/button.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { CheckboxField, RadioCard, TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { say } from '../design/toast.tsx'

const roles: { role: Role; title: string; text: string }[] = [
  { role: 'viewer', title: 'Viewer', text: 'Looks at persons, recordings and deletions.' },
  { role: 'member', title: 'Member', text: 'Edits persons too.' },
  { role: 'admin', title: 'Admin', text: 'Projects, keys, webhooks, members, audit log.' },
  { role: 'owner', title: 'Owner', text: 'Everything, other owners included.' },
]

function RoleChoice({ role, onChange }: { role: Role; onChange: (role: Role) => void }) {
  const me = useMe().member
  return (
    <fieldset className="grid gap-2">
      <legend className="mb-1.5 text-sm font-medium">Role</legend>
      {roles
        .filter((one) => one.role !== 'owner' || me?.role === 'owner')
        .map((one) => (
          <RadioCard
            key={one.role}
            name="role"
            title={one.title}
            checked={role === one.role}
            onChange={() => onChange(one.role)}
          >
            {one.text}
          </RadioCard>
        ))}
    </fieldset>
  )
}

function MayDelete({
  role,
  value,
  onChange,
}: {
  role: Role
  value: boolean
  onChange: (value: boolean) => void
}) {
  return (
    <CheckboxField
      label="May delete persons"
      hint={
        role === 'owner'
          ? 'Owners always may.'
          : 'A permission of its own: erasing cannot be undone.'
      }
      checked={role === 'owner' || value}
      disabled={role === 'owner'}
      onChange={(event) => onChange(event.target.checked)}
    />
  )
}

export function InviteMember({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Invite somebody">
      <InviteForm onClose={onClose} />
    </Dialog>
  )
}

function InviteForm({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [mayDeletePersons, setMayDelete] = useState(false)
  const inviting = useAction(inviteMember)
  if (inviting.data) {
    return (
      <LinkOnce
        text={`Give this link to ${inviting.data.invitation.email}. Lethe sends no e-mail.`}
        link={inviting.data.link}
        expiresAt={inviting.data.invitation.expiresAt}
        onClose={onClose}
      />
    )
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        inviting.mutate({
          body: { email, role, mayDeletePersons: role === 'owner' || mayDeletePersons },
        })
      }}
      className="grid gap-4"
    >
      <TextField
        label="E-mail"
        type="email"
        required
        maxLength={254}
        autoComplete="off"
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <RoleChoice role={role} onChange={setRole} />
      <MayDelete role={role} value={mayDeletePersons} onChange={setMayDelete} />
      <ErrorLine error={inviting.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={inviting.isPending}>
          Make the invitation
        </Button>
      </DialogActions>
    </form>
  )
}

function LinkOnce({
  text,
  link,
  expiresAt,
  onClose,
}: {
  text: string
  link: string
  expiresAt: string
  onClose: () => void
}) {
  return (
    <div className="grid gap-3">
      <p className="text-pretty break-words">{text}</p>
      <SecretOnce text={link} label="Copy the link" />
      <p className="text-sm text-muted">
        It works once, until <Time at={expiresAt} />.
      </p>
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </div>
  )
}

interface OfMember {
  of: Member | null
  onClose: () => void
}

export function EditMember({ of: member, onClose }: OfMember) {
  return (
    <Dialog isOpen={member !== null} onClose={onClose} title={member?.name}>
      {member && <EditForm of={member} onClose={onClose} />}
    </Dialog>
  )
}

function EditForm({ of: member, onClose }: { of: Member; onClose: () => void }) {
  const [role, setRole] = useState(member.role)
  const [mayDeletePersons, setMayDelete] = useState(member.mayDeletePersons)
  const saving = useAction(updateMember, () => {
    say('The member was saved')
    onClose()
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        saving.mutate({
          params: { memberId: member.id },
          body: { role, mayDeletePersons: role === 'owner' || mayDeletePersons },
        })
      }}
      className="grid gap-4"
    >
      <RoleChoice role={role} onChange={setRole} />
      <MayDelete role={role} value={mayDeletePersons} onChange={setMayDelete} />
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

export function RemoveMember({ of: member, onClose }: OfMember) {
  const removing = useAction(removeMember, () => {
    say('The member was removed')
    onClose()
  })
  return (
    <Dialog
      isOpen={member !== null}
      onClose={onClose}
      title={`Remove ${member?.name}?`}
      description="They are signed out everywhere at once and cannot sign in any more. What they did stays in the audit log."
    >
      <ErrorLine error={removing.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="danger"
          isBusy={removing.isPending}
          onClick={() => member && removing.mutate({ params: { memberId: member.id } })}
        >
          Remove the member
        </Button>
      </DialogActions>
    </Dialog>
  )
}

export function ResetLink({ of: member, onClose }: OfMember) {
  return (
    <Dialog isOpen={member !== null} onClose={onClose} title="Make a reset link">
      {member && <ResetForm of={member} onClose={onClose} />}
    </Dialog>
  )
}

function ResetForm({ of: member, onClose }: { of: Member; onClose: () => void }) {
  const making = useAction(makeResetLink)
  if (making.data) {
    return (
      <LinkOnce
        text={`Give this link to ${member.name}, by a way on which you know it is them.`}
        link={making.data.link}
        expiresAt={making.data.expiresAt}
        onClose={onClose}
      />
    )
  }
  return (
    <div className="grid gap-3">
      <p className="text-pretty">
        With the link {member.name} sets a new password. A second factor is taken off and every
        sign-in of theirs ends.
      </p>
      <ErrorLine error={making.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          isBusy={making.isPending}
          onClick={() => making.mutate({ params: { memberId: member.id }, body: {} })}
        >
          Make the link
        </Button>
      </DialogActions>
    </div>
  )
}
