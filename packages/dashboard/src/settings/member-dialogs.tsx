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
import { SecretOnce } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { ConfirmDialog, DialogDone, DialogForm } from '../design/dialog-form.tsx'
import { CheckboxField, RadioCard, TextField } from '../design/field.tsx'
import { Time } from '../design/time.tsx'
import { sayThen } from '../design/toast.tsx'

const roles: { role: Role; title: string; text: string }[] = [
  { role: 'viewer', title: 'Viewer', text: 'Can view people, recordings and deletions.' },
  { role: 'member', title: 'Member', text: 'Can also edit people and add notes to recordings.' },
  {
    role: 'admin',
    title: 'Admin',
    text: 'Can also share recordings, manage projects, keys, webhooks and members, and read the audit log.',
  },
  { role: 'owner', title: 'Owner', text: 'Can do everything, including managing other owners.' },
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
  const mayGive = useMe().member?.mayDeletePersons ?? false
  return (
    <CheckboxField
      label="Can delete people"
      hint={
        role === 'owner'
          ? 'Owners always can.'
          : mayGive
            ? 'A separate permission, because a deletion can’t be undone.'
            : 'You can’t grant this permission because you don’t have it.'
      }
      checked={role === 'owner' || value}
      disabled={role === 'owner' || !mayGive}
      onChange={(event) => onChange(event.target.checked)}
    />
  )
}

export function InviteMember({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Invite member">
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
        text={`Give this link to ${inviting.data.invitation.email}. Lethe does not send email.`}
        link={inviting.data.link}
        expiresAt={inviting.data.invitation.expiresAt}
        onClose={onClose}
      />
    )
  }
  return (
    <DialogForm
      action="Create invitation"
      doing={inviting}
      onSubmit={() =>
        inviting.mutate({
          body: { email, role, mayDeletePersons: role === 'owner' || mayDeletePersons },
        })
      }
      onClose={onClose}
    >
      <TextField
        label="Email"
        type="email"
        required
        maxLength={254}
        autoComplete="off"
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <RoleChoice role={role} onChange={setRole} />
      <MayDelete role={role} value={mayDeletePersons} onChange={setMayDelete} />
    </DialogForm>
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
    <DialogDone onClose={onClose}>
      <p className="text-pretty break-words">{text}</p>
      <SecretOnce text={link} label="Copy the link" />
      <p className="text-sm text-muted">
        It works once and expires <Time at={expiresAt} />.
      </p>
    </DialogDone>
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
  const saving = useAction(updateMember, sayThen(onClose, 'Member saved'))
  return (
    <DialogForm
      action="Save"
      doing={saving}
      onSubmit={() =>
        saving.mutate({
          params: { memberId: member.id },
          body: { role, mayDeletePersons: role === 'owner' || mayDeletePersons },
        })
      }
      onClose={onClose}
    >
      <RoleChoice role={role} onChange={setRole} />
      <MayDelete role={role} value={mayDeletePersons} onChange={setMayDelete} />
    </DialogForm>
  )
}

export function RemoveMember({ of: member, onClose }: OfMember) {
  const removing = useAction(removeMember, sayThen(onClose, 'Member removed'))
  return (
    <ConfirmDialog
      isOpen={member !== null}
      title={`Remove ${member?.name}?`}
      description="They are signed out everywhere immediately and can no longer sign in. Their actions stay in the audit log."
      action="Remove member"
      doing={removing}
      onSubmit={() => member && removing.mutate({ params: { memberId: member.id } })}
      onClose={onClose}
    />
  )
}

export function ResetLink({ of: member, onClose }: OfMember) {
  return (
    <Dialog isOpen={member !== null} onClose={onClose} title="Create reset link">
      {member && <ResetForm of={member} onClose={onClose} />}
    </Dialog>
  )
}

function ResetForm({ of: member, onClose }: { of: Member; onClose: () => void }) {
  const making = useAction(makeResetLink)
  if (making.data) {
    return (
      <LinkOnce
        text={`Give this link to ${member.name} in a way that confirms their identity.`}
        link={making.data.link}
        expiresAt={making.data.expiresAt}
        onClose={onClose}
      />
    )
  }
  return (
    <DialogForm
      action="Create link"
      doing={making}
      onSubmit={() => making.mutate({ params: { memberId: member.id }, body: {} })}
      onClose={onClose}
    >
      <p className="text-pretty">
        With this link, {member.name} can set a new password. It turns off two-factor authentication
        and signs them out everywhere.
      </p>
    </DialogForm>
  )
}
