import { type PasskeyAnswer, signIn, signInWithCode } from '@lethe/contract/dashboard-members.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { codeOf, send } from '../api/call.ts'
import { meQuery } from '../api/me.ts'
import { Button } from '../design/button.tsx'
import { CurrentPassword, TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { SignInFrame } from './frame.tsx'
import { PasskeyButton } from './passkey.tsx'

export function SignIn() {
  const [needsCode, setNeedsCode] = useState(false)
  return needsCode ? (
    <CodeForm onBack={() => setNeedsCode(false)} />
  ) : (
    <PasswordForm onCode={() => setNeedsCode(true)} />
  )
}

/** Goes to where somebody wanted to be before the sign-in was asked for. */
function useEnter(): () => Promise<void> {
  const queryClient = useQueryClient()
  const router = useRouter()
  const navigate = useNavigate()
  const { next } = useSearch({ from: '/sign-in' })
  return async () => {
    queryClient.removeQueries()
    await queryClient.fetchQuery(meQuery)
    if (next) router.history.push(next)
    else await navigate({ to: '/' })
  }
}

function PasswordForm({ onCode }: { onCode: () => void }) {
  const enter = useEnter()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const signingIn = useMutation({
    mutationFn: () => send(signIn, { body: { email, password } }),
    onSuccess: ({ next }) => (next === 'code' ? onCode() : enter()),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signingIn.mutate()
  }
  return (
    <SignInFrame
      title="Sign in"
      foot="Forgot your password? Ask an owner or admin for a reset link."
    >
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label="Email"
          type="email"
          autoComplete="username"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
        <CurrentPassword value={password} onChange={setPassword} />
        {codeOf(signingIn.error) === 'credentials_wrong' ? (
          <p role="alert" className="text-sm text-danger">
            Incorrect email or password.
          </p>
        ) : (
          <ErrorLine error={signingIn.error} />
        )}
        <Button type="submit" look="primary" isBusy={signingIn.isPending}>
          Sign in
        </Button>
      </form>
    </SignInFrame>
  )
}

function CodeForm({ onBack }: { onBack: () => void }) {
  const enter = useEnter()
  const [code, setCode] = useState('')
  const checking = useMutation({
    mutationFn: (factor: { code: string } | { passkey: PasskeyAnswer }) =>
      send(signInWithCode, { body: factor }),
    onSuccess: enter,
  })
  return (
    <SignInFrame
      title="Two-factor authentication"
      description="Type the six digits your authenticator shows, or one of your recovery codes."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          checking.mutate({ code: code.replace(/\s/g, '') })
        }}
        className="grid gap-4"
      >
        <TextField
          label="Code"
          autoComplete="one-time-code"
          required
          value={code}
          onChange={(event) => setCode(event.target.value)}
          className="font-mono tracking-[0.2em]"
          ref={(input) => input?.focus()}
        />
        <ErrorLine error={checking.error} />
        <Button type="submit" look="primary" isBusy={checking.isPending}>
          Sign in
        </Button>
        <PasskeyButton onAnswer={(passkey) => checking.mutateAsync({ passkey }).catch(() => {})} />
        <Button look="quiet" icon="arrowLeft" onClick={onBack}>
          Back to email and password
        </Button>
      </form>
    </SignInFrame>
  )
}
