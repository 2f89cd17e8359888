import { acceptInvitation } from '@lethe/contract/dashboard-members.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { TextField } from '../design/field.tsx'
import { Form } from '../design/form.tsx'
import { NameField, PasswordField } from './fields.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'
import { type Link, WithLink } from './link.tsx'

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
      <Form action="Join" doing={joining} onSubmit={() => joining.mutate()}>
        <TextField label="Email" autoComplete="username" readOnly value={link.email ?? ''} />
        <NameField value={name} onChange={setName} />
        <PasswordField value={password} onChange={setPassword} />
      </Form>
    </SignInFrame>
  )
}
