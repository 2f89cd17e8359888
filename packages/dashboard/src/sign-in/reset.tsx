import { resetPassword } from '@lethe/contract/dashboard-members.ts'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { TextField } from '../design/field.tsx'
import { Form } from '../design/form.tsx'
import { say } from '../design/toast.tsx'
import { PasswordField } from './fields.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'
import { type Link, WithLink } from './link.tsx'

/** A new password for a member who forgot the old one. */
export function Reset() {
  return (
    <WithLink
      kind="reset"
      whenMissing={
        <DeadEnd
          title="Set a new password"
          description="Part of the reset link is missing. Open the complete link."
        />
      }
    >
      {(link) => <ResetForm link={link} />}
    </WithLink>
  )
}

function ResetForm({ link }: { link: Link }) {
  const navigate = useNavigate()
  const [password, setPassword] = useState('')
  const resetting = useMutation({
    mutationFn: () => send(resetPassword, { body: { token: link.token, password } }),
    onSuccess: async () => {
      say('Password changed', 'Sign in with your new password.')
      await navigate({ to: '/sign-in' })
    },
  })
  return (
    <SignInFrame
      title="Set a new password"
      description="You will be signed out everywhere, and two-factor authentication will be turned off."
    >
      <Form action="Set password" doing={resetting} onSubmit={() => resetting.mutate()}>
        <TextField label="Email" autoComplete="username" readOnly value={link.email ?? ''} />
        <PasswordField label="New password" value={password} onChange={setPassword} />
      </Form>
    </SignInFrame>
  )
}
