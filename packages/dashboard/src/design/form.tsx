import type { ComponentProps, ReactNode } from 'react'
import { Button } from './button.tsx'
import { ErrorLine } from './states.tsx'

export interface FormProps {
  /** What the button does. */
  action: ReactNode
  look?: NonNullable<ComponentProps<typeof Button>['look']>
  doing: { isPending: boolean; error: unknown }
  /** What went wrong, where it has words of its own. */
  error?: ReactNode
  disabledReason?: string | undefined
  onSubmit: () => void
  className?: string
  /** Where the button stands. */
  place?: (submit: ReactNode) => ReactNode
  children?: ReactNode
}

/** Fields, what went wrong with them, and the button that sends them, once at a time. */
export function Form({
  action,
  look = 'primary',
  doing,
  error,
  disabledReason,
  onSubmit,
  className = '',
  place = (submit) => submit,
  children,
}: FormProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (disabledReason === undefined && !doing.isPending) onSubmit()
      }}
      className={`grid gap-4 ${className}`}
    >
      {children}
      {error ?? <ErrorLine error={doing.error} />}
      {place(
        <Button type="submit" look={look} isBusy={doing.isPending} disabledReason={disabledReason}>
          {action}
        </Button>,
      )}
    </form>
  )
}

/** A form of a page, whose button is as wide as its words. */
export function PanelForm({ className = '*:max-w-md', ...form }: FormProps) {
  return (
    <Form
      {...form}
      className={`border-t border-line px-4 py-4 ${className}`}
      place={(submit) => <div>{submit}</div>}
    />
  )
}
