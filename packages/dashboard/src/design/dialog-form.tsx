import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { DialogActions } from './dialog.tsx'
import { ErrorLine } from './states.tsx'

/** What a dialog asks for, what went wrong with the answer, and the two ways out. */
export function DialogForm({
  action,
  look = 'primary',
  doing,
  disabledReason,
  onSubmit,
  onClose,
  children,
}: {
  /** What the button does. */
  action: ReactNode
  look?: 'primary' | 'danger'
  doing: { isPending: boolean; error: unknown }
  disabledReason?: string | undefined
  onSubmit: () => void
  onClose: () => void
  children?: ReactNode
}) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (disabledReason === undefined && !doing.isPending) onSubmit()
      }}
      className="grid gap-4"
    >
      {children}
      <ErrorLine error={doing.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look={look} isBusy={doing.isPending} disabledReason={disabledReason}>
          {action}
        </Button>
      </DialogActions>
    </form>
  )
}

/** What an answer has brought, and the way out. */
export function DialogDone({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  return (
    <div className="grid gap-3">
      {children}
      <DialogActions>
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </DialogActions>
    </div>
  )
}
