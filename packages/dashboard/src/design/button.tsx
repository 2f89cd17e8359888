import { Link, type LinkComponentProps } from '@tanstack/react-router'
import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon, type IconName } from './icon.tsx'

const looks = {
  primary:
    'bg-accent text-on-accent hover:bg-accent-strong aria-disabled:bg-sunken aria-disabled:text-muted disabled:bg-sunken disabled:text-muted',
  secondary:
    'border border-line bg-surface text-ink shadow-low hover:bg-hover aria-disabled:bg-sunken aria-disabled:text-muted disabled:bg-sunken disabled:text-muted',
  quiet:
    'text-ink hover:bg-sunken aria-disabled:text-muted aria-disabled:hover:bg-transparent disabled:text-muted',
  danger:
    'bg-danger text-on-danger hover:bg-danger-strong aria-disabled:bg-sunken aria-disabled:text-muted disabled:bg-sunken disabled:text-muted',
  dangerQuiet: 'text-danger hover:bg-danger-soft aria-disabled:text-muted disabled:text-muted',
} as const

const sizes = { small: 'h-7 px-2.5 text-sm', medium: 'h-9 px-3.5 text-base' } as const

interface Look {
  look?: keyof typeof looks
  size?: keyof typeof sizes
  icon?: IconName
}

function classOf({ look = 'secondary', size = 'medium' }: Look, extra = ''): string {
  return `inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap transition-colors aria-disabled:cursor-not-allowed disabled:cursor-not-allowed ${looks[look]} ${sizes[size]} ${extra}`
}

interface ButtonProps extends ComponentProps<'button'>, Look {
  isBusy?: boolean
  /** Why it cannot be used now; the button stays reachable so that everybody can read it. */
  disabledReason?: string | undefined
}

export function Button({
  look,
  size,
  icon,
  isBusy = false,
  disabledReason,
  className,
  children,
  onClick,
  ...rest
}: ButtonProps) {
  const id = useId()
  return (
    <button
      type="button"
      {...rest}
      className={classOf({ ...(look && { look }), ...(size && { size }) }, className)}
      aria-busy={isBusy || undefined}
      aria-disabled={disabledReason !== undefined || isBusy || undefined}
      aria-describedby={disabledReason === undefined ? rest['aria-describedby'] : id}
      data-hint={disabledReason}
      onClick={
        disabledReason === undefined && !isBusy ? onClick : (event) => event.preventDefault()
      }
    >
      {isBusy ? <Spinner /> : icon && <Icon name={icon} />}
      {children}
      {disabledReason !== undefined && (
        <span id={id} hidden>
          {disabledReason}
        </span>
      )}
    </button>
  )
}

export function LinkButton({
  look,
  size,
  icon,
  className,
  children,
  ...rest
}: LinkComponentProps & Look & { className?: string; children: ReactNode }) {
  return (
    <Link
      {...rest}
      className={classOf({ ...(look && { look }), ...(size && { size }) }, className)}
    >
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  )
}

/** A link to a file of the server, not to a page. */
export function DownloadLink({
  look,
  size,
  icon = 'download',
  children,
  ...rest
}: ComponentProps<'a'> & Look) {
  return (
    <a {...rest} className={classOf({ ...(look && { look }), ...(size && { size }) })}>
      <Icon name={icon} />
      {children}
    </a>
  )
}

interface IconButtonProps extends ComponentProps<'button'> {
  label: string
  icon: IconName
  look?: keyof typeof looks
  shortcut?: string
}

export function IconButton({
  label,
  icon,
  look = 'quiet',
  shortcut,
  className = '',
  ...rest
}: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      data-hint={shortcut ? `${label} · ${shortcut}` : label}
      {...rest}
      className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md transition-colors disabled:cursor-not-allowed ${looks[look]} ${className}`}
    >
      <Icon name={icon} />
    </button>
  )
}

export function Spinner() {
  return (
    <svg aria-hidden="true" viewBox="0 0 20 20" className="size-4 animate-spin" fill="none">
      <circle cx="10" cy="10" r="7" stroke="currentColor" strokeWidth="2" opacity=".25" />
      <path d="M17 10a7 7 0 0 0-7-7" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
    </svg>
  )
}
