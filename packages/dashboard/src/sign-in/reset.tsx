import { resetPassword } from '@lethe/contract/dashboard-members.ts'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { Button } from '../design/button.tsx'
import { TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'
import { type Link, PasswordField, WithLink } from './link.tsx'

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
      <form
        onSubmit={(event) => {
          event.preventDefault()
          resetting.mutate()
        }}
        className="grid gap-4"
      >
        <TextField label="Email" autoComplete="username" readOnly value={link.email ?? ''} />
        <PasswordField label="New password" value={password} onChange={setPassword} />
        <ErrorLine error={resetting.error} />
        <Button type="submit" look="primary" isBusy={resetting.isPending}>
          Set password
        </Button>
      </form>
    </SignInFrame>
  )
}
