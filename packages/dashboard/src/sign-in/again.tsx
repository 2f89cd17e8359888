import {
  type Member,
  type PasskeyAnswer,
  proveIdentity,
  signIn,
  signInWithCode,
} from '@lethe/contract/dashboard-members.ts'
import { useEffect, useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { type Asked, call, codeOf } from '../api/call.ts'
import { DialogForm } from '../design/dialog-form.tsx'
import { CodeField, CurrentPassword, HiddenEmail } from './fields.tsx'
import { PasskeyButton } from './passkey.tsx'

/**
 * Asks for the password over everything that is open, dialogs too: a dialog of the browser's own, in
 * a place of its own, so that no other takes a click or key in it for one outside of itself.
 */
export function askAgain(what: Asked, member: Member): Promise<boolean> {
  const place = document.createElement('div')
  for (const name of ['click', 'keydown', 'pointerdown', 'mousedown', 'focusin'] as const) {
    place.addEventListener(name, (event) => event.stopPropagation())
  }
  document.body.append(place)
  const focused = document.activeElement
  const root = createRoot(place)
  return new Promise<boolean>((resolve) => {
    root.render(<Again what={what} member={member} onDone={resolve} />)
  }).finally(() => {
    root.unmount()
    place.remove()
    if (focused instanceof HTMLElement) focused.focus()
  })
}

const words = {
  proof: {
    title: 'Confirm it’s you',
    text: 'Enter your password again. You won’t be asked again for ten minutes.',
    button: 'Confirm',
    cancel: 'Cancel',
  },
  'sign-in': {
    title: 'You’ve been signed out',
    text: 'Sign in again to continue. What you typed is still here.',
    button: 'Sign in',
    cancel: 'Leave this page',
  },
} as const

function Again({
  what: asked,
  member,
  onDone,
}: {
  what: Asked
  member: Member
  onDone: (isGiven: boolean) => void
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [what, setWhat] = useState(asked)
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const [needsCode, setNeedsCode] = useState(asked === 'proof' && member.hasSecondFactor)
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => dialog.current?.showModal(), [])
  const { title, text, button, cancel } = words[what]

  async function submit(passkey?: PasskeyAnswer) {
    const factor = passkey ? { passkey } : { code }
    setBusy(true)
    try {
      if (what === 'proof') await prove(needsCode ? factor : {})
      else if (needsCode) await call(signInWithCode, { body: factor })
      else if ((await signInAgain()) === 'code') return setNeedsCode(true)
      onDone(true)
    } catch (failure) {
      if (codeOf(failure) === 'unauthorized') {
        setWhat('sign-in')
        setNeedsCode(false)
      } else setError(failure)
    } finally {
      setBusy(false)
    }
  }

  const prove = (factor: { code?: string; passkey?: PasskeyAnswer }) =>
    call(proveIdentity, { body: { password, ...factor } })

  async function signInAgain(): Promise<'done' | 'code'> {
    setError(undefined)
    return (await call(signIn, { body: { email: member.email, password } })).body.next
  }

  return (
    <dialog
      ref={dialog}
      aria-labelledby="again-title"
      onCancel={(event) => {
        event.preventDefault()
        onDone(false)
      }}
      className={`m-auto w-[calc(100%-1.5rem)] max-w-[26rem] rounded-xl border border-line bg-raised p-5 text-ink shadow-high ${what === 'sign-in' ? 'backdrop:bg-canvas' : 'backdrop:bg-scrim'}`}
    >
      <h2 id="again-title" className="text-lg font-semibold tracking-[-0.01em]">
        {title}
      </h2>
      <p className="mt-1 mb-4 text-pretty text-muted">{text}</p>
      <DialogForm
        action={button}
        cancel={cancel}
        doing={{ isPending: isBusy, error }}
        onSubmit={() => void submit()}
        onClose={() => onDone(false)}
      >
        <HiddenEmail email={member.email} />
        <p className="text-sm break-all text-muted">{member.email}</p>
        {!(what === 'sign-in' && needsCode) && (
          <CurrentPassword value={password} onChange={setPassword} />
        )}
        {needsCode && (
          <>
            <CodeField value={code} onChange={setCode} />
            <PasskeyButton
              onAnswer={submit}
              disabledReason={
                what === 'proof' && password === '' ? 'Type your password first.' : undefined
              }
            />
          </>
        )}
      </DialogForm>
    </dialog>
  )
}
