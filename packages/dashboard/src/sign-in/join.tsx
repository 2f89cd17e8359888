import { acceptInvitation } from '@lethe/contract/dashboard-members.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { Button } from '../design/button.tsx'
import { TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'
import { type Link, PasswordField, WithLink } from './link.tsx'

const mayDo = {
  owner: 'You will be an owner, with full access including members.',
  admin: 'You will be an admin: manage people, keys, webhooks and members.',
  member: 'You will be a member: view people and recordings, and edit people.',
  viewer: 'You will be a viewer: view people, recordings and deletions.',
}

/** An invited member's account. */
export function Join() {
  return (
    <WithLink
      kind="invitation"
      whenMissing={
        <DeadEnd
          title="Join"
          description="Part of the invitation link is missing. Open the complete link."
        />
      }
    >
      {(link) => <JoinForm link={link} />}
    </WithLink>
  )
}

function JoinForm({ link }: { link: Link }) {
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const joining = useMutation({
    mutationFn: () => send(acceptInvitation, { body: { token: link.token, name, password } }),
    onSuccess: async () => {
      queryClient.removeQueries()
      await navigate({ to: '/' })
    },
  })
  return (
    <SignInFrame title="Join Lethe" description={link.role && mayDo[link.role]}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          joining.mutate()
        }}
        className="grid gap-4"
      >
        <TextField label="Email" autoComplete="username" readOnly value={link.email ?? ''} />
        <TextField
          label="Your name"
          autoComplete="name"
          required
          maxLength={200}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <PasswordField value={password} onChange={setPassword} />
        <ErrorLine error={joining.error} />
        <Button type="submit" look="primary" isBusy={joining.isPending}>
          Join
        </Button>
      </form>
    </SignInFrame>
  )
}
