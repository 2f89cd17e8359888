import type { ComponentProps, ReactNode } from 'react'
import { RequestFailed } from '../api/call.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { Icon, type IconName } from './icon.tsx'

/** Where a list has nothing to show: what is missing, why, and what to do. */
export function Empty({
  icon,
  title,
  children,
  actions,
  isPage = false,
}: {
  icon: IconName
  title: string
  children?: ReactNode
  actions?: ReactNode
  /** It is all there is of a page, so its title is the page's. */
  isPage?: boolean
}) {
  return (
    <div className="flex flex-col items-center px-6 py-16 text-center">
      <span className="mb-4 grid size-11 place-items-center rounded-xl bg-accent-soft text-accent">
        <Icon name={icon} className="size-5" />
      </span>
      {isPage ? <h1 className="text-lg">{title}</h1> : <h2>{title}</h2>}
      {children && <div className="mt-1.5 max-w-[26rem] text-pretty text-muted">{children}</div>}
      {actions && <div className="mt-5 flex flex-wrap justify-center gap-2">{actions}</div>}
    </div>
  )
}

/** A request that failed: what it means, its id for a report, and the way to try again. */
export function ErrorPanel({
  error,
  title,
  retry,
}: {
  error: unknown
  title: string
  retry?: (() => void) | undefined
}) {
  return (
    <div role="alert" className="flex flex-col items-center px-6 py-14 text-center">
      <span className="mb-4 grid size-11 place-items-center rounded-xl bg-danger-soft text-danger">
        <Icon name="warning" className="size-5" />
      </span>
      <h2>{title}</h2>
      <p className="mt-1.5 max-w-[28rem] text-pretty text-muted">{meaningOf(error)}</p>
      {error instanceof RequestFailed && (
        <p className="mt-3 flex items-center gap-1 text-sm text-muted">
          Request <code className="font-mono text-xs break-all">{error.requestId}</code>
          <CopyButton text={error.requestId} label="Copy request ID" />
        </p>
      )}
      {retry && (
        <Button className="mt-5" icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  )
}

/** The same in one line, under a form. */
export function ErrorLine({ error }: { error: unknown }) {
  if (!error) return null
  return (
    <p role="alert" className="flex items-start gap-2 text-sm text-danger">
      <Icon name="warning" className="mt-0.5 size-4" />
      <span>
        {meaningOf(error)}
        {error instanceof RequestFailed && error.status >= 500 && (
          <span className="block font-mono text-xs">Request {error.requestId}</span>
        )}
      </span>
    </p>
  )
}

export function meaningOf(error: unknown): string {
  if (!(error instanceof RequestFailed)) {
    return navigator.onLine
      ? 'The server did not respond. Check your connection and that the service is running.'
      : 'You’re offline. Nothing was changed.'
  }
  switch (error.code) {
    case 'unauthorized':
      return 'You have been signed out.'
    case 'forbidden':
      return 'Your role does not allow this. Ask an owner or admin.'
    case 'reauthentication_required':
      return 'Your password is needed again. Try again and enter it.'
    case 'credentials_wrong':
      return 'Incorrect. Check what you entered and try again.'
    case 'rate_limited':
      return 'Too many attempts. Wait a minute, then try again.'
    case 'unavailable':
      return 'The database is unavailable right now. Try again in a moment.'
    case 'internal_error':
      return 'The server failed to process the request. Use the request ID to find it in the server log.'
    case 'link_invalid':
      return 'This link was already used or has expired.'
    case 'last_owner':
      return 'This is the last owner. Make another member an owner first.'
    case 'member_exists':
      return 'A member with this email already exists.'
    case 'person_being_deleted':
      return 'This person is being deleted and can no longer be changed.'
    case 'deletion_in_progress':
      return 'A deletion of this person with the other choice for recordings is in progress.'
  }
  const [detail] = error.details
  return detail ? `${error.message} (${detail.path} ${detail.issue})` : error.message
}

/** Grey shapes of what is about to come; said once for those who do not see them. */
export function Skeletons({ rows = 6, className = 'h-11' }: { rows?: number; className?: string }) {
  return (
    <div role="status" className="grid gap-2 p-4">
      <span className="sr-only">Loading…</span>
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the shapes are all the same
        <div key={index} aria-hidden="true" className={`skeleton ${className}`} />
      ))}
    </div>
  )
}

/** What is shown in place of a response: a skeleton, or why there is none. */
export function Awaited({
  error,
  title,
  retry,
  isCard = false,
  ...shapes
}: {
  error: unknown
  title: string
  retry: () => unknown
  /** An error stands in a card of its own. */
  isCard?: boolean
} & ComponentProps<typeof Skeletons>) {
  if (!error) return <Skeletons {...shapes} />
  return (
    <div className={isCard ? 'card' : ''}>
      <ErrorPanel error={error} title={title} retry={() => void retry()} />
    </div>
  )
}
