import { TextField } from '../design/field.tsx'

interface FieldProps {
  label?: string
  value: string
  onChange: (value: string) => void
}

export function NameField({ label = 'Your name', value, onChange }: FieldProps) {
  return (
    <TextField
      label={label}
      autoComplete="name"
      required
      maxLength={200}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** The address that somebody signs in with. */
export function EmailField({ label = 'Email', value, onChange }: FieldProps) {
  return (
    <TextField
      label={label}
      type="email"
      autoComplete="username"
      required
      maxLength={254}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** Tells a password manager whose password a form asks for. */
export function HiddenEmail({ email }: { email: string }) {
  return (
    <input type="email" autoComplete="username" value={email} readOnly hidden aria-label="Email" />
  )
}

/** The password that somebody has. */
export function CurrentPassword({ label = 'Password', value, onChange }: FieldProps) {
  return (
    <TextField
      label={label}
      type="password"
      autoComplete="current-password"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** A new password. */
export function PasswordField({ label = 'Password', value, onChange }: FieldProps) {
  return (
    <TextField
      label={label}
      hint="12 characters or more. A few random words work well."
      type="password"
      autoComplete="new-password"
      required
      minLength={12}
      maxLength={128}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

/** What an authenticator shows; each code works once, so the one of the sign-in does not here. */
export function CodeField({ label = 'Two-factor code', value, onChange }: FieldProps) {
  return (
    <TextField
      label={label}
      hint="From your authenticator, or a recovery code. Each code works once."
      autoComplete="one-time-code"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className="font-mono tracking-[0.2em]"
    />
  )
}
