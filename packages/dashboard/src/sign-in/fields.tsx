import type { ComponentProps } from 'react'
import { TextField } from '../design/field.tsx'

type TextFieldProps = ComponentProps<typeof TextField>

interface FieldProps {
  label?: string
  value: string
  onChange: (value: string) => void
}

function RequiredField({
  onChange,
  ...field
}: Omit<TextFieldProps, 'onChange'> & Pick<FieldProps, 'onChange'>) {
  return <TextField required {...field} onChange={(event) => onChange(event.target.value)} />
}

export function NameField({ label = 'Your name', ...field }: FieldProps) {
  return <RequiredField label={label} autoComplete="name" maxLength={200} {...field} />
}

/** The address that somebody signs in with. */
export function EmailField({ label = 'Email', ...field }: FieldProps) {
  return (
    <RequiredField label={label} type="email" autoComplete="username" maxLength={254} {...field} />
  )
}

/** Tells a password manager whose password a form asks for. */
export function HiddenEmail({ email }: { email: string }) {
  return (
    <input type="email" autoComplete="username" value={email} readOnly hidden aria-label="Email" />
  )
}

/** The password that somebody has. */
export function CurrentPassword({ label = 'Password', ...field }: FieldProps) {
  return <RequiredField label={label} type="password" autoComplete="current-password" {...field} />
}

/** A new password. */
export function PasswordField({ label = 'Password', ...field }: FieldProps) {
  return (
    <RequiredField
      label={label}
      hint="12 characters or more. A few random words work well."
      type="password"
      autoComplete="new-password"
      minLength={12}
      maxLength={128}
      {...field}
    />
  )
}

/** A code of the second factor. */
export function CodeField({
  label = 'Two-factor code',
  hint = 'From your authenticator, or a recovery code. Each code works once.',
  ...field
}: FieldProps & Pick<TextFieldProps, 'hint' | 'inputMode' | 'ref'>) {
  return (
    <RequiredField
      label={label}
      hint={hint}
      autoComplete="one-time-code"
      className="font-mono tracking-[0.2em]"
      {...field}
    />
  )
}
