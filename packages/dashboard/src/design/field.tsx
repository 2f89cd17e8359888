import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon } from './icon.tsx'

interface FieldProps {
  label: ReactNode
  hint?: ReactNode
  error?: ReactNode
}

interface FieldParts {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
}

/** A control with its label, what helps to fill it in, and what is wrong with what was filled in. */
export function Field({
  label,
  hint,
  error,
  children,
}: FieldProps & { children: (parts: FieldParts) => ReactNode }) {
  const id = useId()
  const describedBy = [hint && `${id}h`, error && `${id}e`].filter(Boolean).join(' ')
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        'aria-describedby': describedBy || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {hint && (
        <p id={`${id}h`} className="text-sm text-pretty text-muted">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}e`} role="alert" className="flex items-center gap-1.5 text-sm text-danger">
          <Icon name="warning" />
          {error}
        </p>
      )}
    </div>
  )
}

export function TextField({
  label,
  hint,
  error,
  className = '',
  ...input
}: FieldProps & Omit<ComponentProps<'input'>, 'children'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(parts) => <input {...input} {...parts} className={`field ${className}`} />}
    </Field>
  )
}

export function SelectField({
  label,
  hint,
  children,
  ...select
}: FieldProps & ComponentProps<'select'>) {
  return (
    <Field label={label} hint={hint}>
      {(parts) => (
        <Select {...select} {...parts}>
          {children}
        </Select>
      )}
    </Field>
  )
}

export function Select({ className = '', children, ...select }: ComponentProps<'select'>) {
  return (
    <span className="relative inline-grid">
      <select {...select} className={`field appearance-none pr-8 ${className}`}>
        {children}
      </select>
      <Icon
        name="chevronDown"
        className="pointer-events-none absolute top-1/2 right-2.5 size-4 -translate-y-1/2 text-muted"
      />
    </span>
  )
}

export function Checkbox({ className = '', ...input }: ComponentProps<'input'>) {
  return <input type="checkbox" {...input} className={`check -m-1 shrink-0 ${className}`} />
}

export function CheckboxField({
  label,
  hint,
  ...input
}: { label: ReactNode; hint?: ReactNode } & ComponentProps<'input'>) {
  const id = useId()
  return (
    <div className="flex gap-2.5">
      <Checkbox
        {...input}
        id={id}
        aria-describedby={hint ? `${id}h` : undefined}
        className="-mt-0.5!"
      />
      <div>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {hint && (
          <p id={`${id}h`} className="text-sm text-pretty text-muted">
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}

/** One of a few, each with what it means. */
export function RadioCard({
  title,
  children,
  tone = 'accent',
  ...input
}: { title: ReactNode; children: ReactNode; tone?: 'accent' | 'danger' } & Omit<
  ComponentProps<'input'>,
  'title'
>) {
  const id = useId()
  const marked =
    tone === 'danger'
      ? 'has-checked:border-danger has-checked:bg-danger-soft/50'
      : 'has-checked:border-accent has-checked:bg-accent-soft/50'
  return (
    <div
      className={`relative flex gap-3 rounded-lg border border-line p-3.5 has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent ${marked}`}
    >
      <input
        type="radio"
        {...input}
        id={id}
        aria-describedby={`${id}d`}
        className={`mt-[3px] size-4 shrink-0 outline-none ${tone === 'danger' ? 'accent-danger' : 'accent-accent'}`}
      />
      <div className="min-w-0">
        <label htmlFor={id} className="font-medium before:absolute before:inset-0">
          {title}
        </label>
        <div id={`${id}d`} className="mt-0.5 text-sm text-pretty text-muted">
          {children}
        </div>
      </div>
    </div>
  )
}
