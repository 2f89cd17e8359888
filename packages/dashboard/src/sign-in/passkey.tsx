import { type PasskeyAnswer, startPasskeyUse } from '@lethe/contract/dashboard-members.ts'
import { useCallback, useEffect, useState } from 'react'
import { type Body, call } from '../api/call.ts'
import { Button } from '../design/button.tsx'

/** Browsers since 2025 read and write what the server speaks. */
export const hasPasskeys = () =>
  typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON === 'function'

type Options = Body<typeof startPasskeyUse>['options']

/** Asks for one of the member's passkeys in the place of a code; nothing where there is none. */
export function PasskeyButton({
  onAnswer,
  disabledReason,
}: {
  onAnswer: (passkey: PasskeyAnswer) => Promise<unknown>
  disabledReason?: string | undefined
}) {
  const [options, setOptions] = useState<Options>(null)
  const [isBusy, setBusy] = useState(false)
  const [isRefused, setRefused] = useState(false)
  const start = useCallback(async () => {
    const { body } = await call(startPasskeyUse, { body: {} })
    setOptions(body.options)
  }, [])
  // A service that is away says so where the member does something.
  useEffect(() => {
    if (hasPasskeys()) start().catch(() => {})
  }, [start])
  if (options === null) return null

  async function use(given: NonNullable<Options>) {
    setBusy(true)
    setRefused(false)
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(given as never)
    const credential = await navigator.credentials.get({ publicKey }).catch(() => null)
    if (credential) await onAnswer((credential as PublicKeyCredential).toJSON() as PasskeyAnswer)
    else setRefused(true)
    // What was signed, or ran out, is good for no second try.
    await start().catch(() => {})
    setBusy(false)
  }

  return (
    <>
      {isRefused && (
        <p role="alert" className="text-sm text-danger">
          No passkey was used. Try again, or type a code.
        </p>
      )}
      <Button
        icon="shield"
        isBusy={isBusy}
        disabledReason={disabledReason}
        onClick={() => void use(options)}
      >
        Use a passkey
      </Button>
    </>
  )
}
