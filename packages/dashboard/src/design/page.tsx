import { Link, type LinkComponentProps, useLocation } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { Icon } from './icon.tsx'

/** The head of a page: its name is the window's title too. */
export function PageHead({
  title,
  titleText,
  children,
  actions,
}: {
  title: ReactNode
  /** Where the title is more than text. Never anything personal: windows' titles end up in histories. */
  titleText?: string
  children?: ReactNode
  actions?: ReactNode
}) {
  useTitle(titleText ?? String(title))
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3 pb-4">
      <div className="min-w-0">
        <h1 className="break-words">{title}</h1>
        {children && <div className="mt-1 max-w-[60ch] text-pretty text-muted">{children}</div>}
      </div>
      {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </header>
  )
}

export function useTitle(text: string): void {
  useEffect(() => {
    document.title = `${text} · Lethe`
  }, [text])
}

/** Tabs that are addresses: back and reload keep the place. */
export function LinkTabs({ label, children }: { label: string; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  // Where it is too narrow for all of them, the one that is open is in sight.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page is another tab
  useEffect(() => {
    const tab = nav.current?.querySelector<HTMLElement>('[aria-current]')
    if (tab) nav.current?.scrollTo({ left: tab.offsetLeft - tab.offsetWidth })
  }, [pathname])
  return (
    <nav ref={nav} aria-label={label} className="relative -mb-px flex gap-1 overflow-x-auto px-1">
      {children}
    </nav>
  )
}

export function LinkTab({ children, ...rest }: LinkComponentProps & { children: ReactNode }) {
  return (
    <Link
      {...rest}
      activeProps={{ className: 'text-ink border-accent', 'aria-current': 'page' }}
      inactiveProps={{ className: 'text-muted border-transparent hover:text-ink' }}
      className="flex h-10 shrink-0 items-center gap-1.5 border-b-2 px-2.5 font-medium whitespace-nowrap -outline-offset-2"
    >
      {children}
    </Link>
  )
}

/** The way to the list that a page is of. */
export function BackLink({ children, ...rest }: LinkComponentProps & { children: ReactNode }) {
  return (
    <Link
      {...rest}
      className="mb-4 inline-flex w-fit items-center gap-1.5 rounded-sm text-sm font-medium text-muted hover:text-ink"
    >
      <Icon name="arrowLeft" className="size-3.5" />
      {children}
    </Link>
  )
}

/** A part of a settings page. */
export function Panel({
  title,
  children,
  description,
  actions,
}: {
  title: string
  description?: ReactNode
  children?: ReactNode
  actions?: ReactNode
}) {
  return (
    <section className="card mb-5">
      <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 px-4 pt-4 pb-3.5">
        <div className="min-w-0">
          <h2>{title}</h2>
          {description && (
            <div className="mt-0.5 max-w-[64ch] text-pretty text-muted">{description}</div>
          )}
        </div>
        {actions}
      </header>
      {children}
    </section>
  )
}

/** Facts in two columns. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid gap-x-6 gap-y-2.5 sm:grid-cols-[10rem_minmax(0,1fr)]">{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted max-sm:-mb-2">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  )
}
