import { resetPassword } from '@lethe/contract/dashboard-members.ts'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { Button, LinkButton } from '../design/button.tsx'
import { TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'
import { SignInFrame } from './frame.tsx'
import { type Link, PasswordField, WithLink } from './link.tsx'

/** A new password for a member who forgot the old one. */
export function Reset() {
  return (
    <WithLink
      kind="reset"
      whenMissing={
        <SignInFrame
          title="Set a new password"
          description="Open the whole link that an owner or admin made for you; a part of it is missing here."
        >
          <LinkButton to="/sign-in" look="primary" className="w-full">
            Go to the sign-in
          </LinkButton>
        </SignInFrame>
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
      say('The new password is set', 'Sign in with it now.')
      await navigate({ to: '/sign-in' })
    },
  })
  return (
    <SignInFrame
      title="Set a new password"
      description="You will be signed out everywhere, and a second factor is taken off."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          resetting.mutate()
        }}
        className="grid gap-4"
      >
        <TextField label="E-mail" autoComplete="username" readOnly value={link.email ?? ''} />
        <PasswordField label="New password" value={password} onChange={setPassword} />
        <ErrorLine error={resetting.error} />
        <Button type="submit" look="primary" isBusy={resetting.isPending}>
          Set the password
        </Button>
      </form>
    </SignInFrame>
  )
}
