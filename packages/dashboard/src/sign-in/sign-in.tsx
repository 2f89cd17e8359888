import { type PasskeyAnswer, signIn, signInWithCode } from '@lethe/contract/dashboard-members.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useRouter, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { codeOf, send } from '../api/call.ts'
import { meQuery } from '../api/me.ts'
import { Button } from '../design/button.tsx'
import { Form } from '../design/form.tsx'
import { CodeField, CurrentPassword, EmailField } from './fields.tsx'
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
  return (
    <SignInFrame
      title="Sign in"
      foot="Forgot your password? Ask an owner or admin for a reset link."
    >
      <Form
        action="Sign in"
        doing={signingIn}
        error={
          codeOf(signingIn.error) === 'credentials_wrong' ? (
            <p role="alert" className="text-sm text-danger">
              Incorrect email or password.
            </p>
          ) : undefined
        }
        onSubmit={() => signingIn.mutate()}
      >
        <EmailField value={email} onChange={setEmail} />
        <CurrentPassword value={password} onChange={setPassword} />
      </Form>
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
      <Form
        action="Sign in"
        doing={checking}
        onSubmit={() => checking.mutate({ code: code.replace(/\s/g, '') })}
        place={(submit) => (
          <>
            {submit}
            <PasskeyButton
              onAnswer={(passkey) => checking.mutateAsync({ passkey }).catch(() => {})}
            />
            <Button look="quiet" icon="arrowLeft" onClick={onBack}>
              Back to email and password
            </Button>
          </>
        )}
      >
        <CodeField
          label="Code"
          hint={null}
          value={code}
          onChange={setCode}
          ref={(input) => input?.focus()}
        />
      </Form>
    </SignInFrame>
  )
}
