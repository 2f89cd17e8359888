import { getPublicKeys } from '@lethe/contract/receipt.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { send } from '../api/call.ts'
import { Dialog } from '../design/dialog.tsx'
import { DialogForm } from '../design/dialog-form.tsx'
import { Field, TextField } from '../design/field.tsx'
import { verifyReceipt } from './receipt.ts'
import { VerdictText } from './receipt-panel.tsx'

/** Checks a receipt that somebody brings: nothing of it leaves this browser. */
export function VerifyDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [receipt, setReceipt] = useState('')
  const [externalId, setExternalId] = useState('')
  const verifying = useMutation({
    mutationFn: async () =>
      verifyReceipt(receipt, await send(getPublicKeys, {}), externalId || undefined),
  })
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Verify a receipt"
      description="The signature is checked in this browser against this installation’s public keys. The receipt is not sent anywhere."
      width="wide"
    >
      <DialogForm
        action="Verify"
        cancel="Close"
        doing={verifying}
        onSubmit={() => verifying.mutate()}
        onClose={onClose}
      >
        <Field label="Receipt" hint="Paste the receipt or choose the downloaded file.">
          {(parts) => (
            <textarea
              {...parts}
              required
              rows={4}
              value={receipt}
              spellCheck={false}
              onChange={(event) => setReceipt(event.target.value)}
              className="field h-auto py-2 font-mono text-xs break-all"
            />
          )}
        </Field>
        <input
          type="file"
          aria-label="Receipt file"
          accept=".jws,.txt,.jwt,.json"
          onChange={async (event) => {
            const file = event.target.files?.[0]
            if (file) setReceipt((await file.slice(0, 100_000).text()).trim())
          }}
          className="text-sm text-muted file:mr-3 file:h-8 file:cursor-pointer file:rounded-md file:border file:border-line file:bg-surface file:px-3 file:font-medium file:text-ink"
        />
        <TextField
          label="External ID (optional)"
          hint="A receipt contains no personal data. Enter the external ID to check that it is for this person."
          value={externalId}
          onChange={(event) => setExternalId(event.target.value)}
          autoComplete="off"
          className="font-mono"
        />
        <div role="status">{verifying.data && <VerdictText verdict={verifying.data} />}</div>
      </DialogForm>
    </Dialog>
  )
}
