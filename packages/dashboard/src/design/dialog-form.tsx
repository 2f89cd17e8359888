import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { Dialog, DialogActions } from './dialog.tsx'
import type { DialogProps } from './dialog-parts.tsx'
import { Form, type FormProps } from './form.tsx'

type DialogFormProps = Omit<FormProps, 'place' | 'error' | 'className'> & {
  cancel?: string
  onClose: () => void
}

/** What a dialog asks for, what went wrong with the answer, and the two ways out. */
export function DialogForm({ cancel = 'Cancel', onClose, ...form }: DialogFormProps) {
  return (
    <Form
      {...form}
      place={(submit) => (
        <DialogActions>
          <Button onClick={onClose}>{cancel}</Button>
          {submit}
        </DialogActions>
      )}
    />
  )
}

/** A question before something goes for good. */
export function ConfirmDialog({
  isOpen,
  title,
  description,
  ...form
}: Omit<DialogProps, 'children'> & DialogFormProps) {
  return (
    <Dialog isOpen={isOpen} onClose={form.onClose} title={title} description={description}>
      <DialogForm look="danger" {...form} />
    </Dialog>
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
