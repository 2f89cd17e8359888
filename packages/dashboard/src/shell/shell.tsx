import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { lazy, useEffect, useState } from 'react'
import { projectsQuery, useProjectId, useSummary } from '../api/projects.ts'
import { IconButton } from '../design/button.tsx'
import { Dialog, SideDialog } from '../design/dialog.tsx'
import { Icon, type IconName, Logo } from '../design/icon.tsx'
import { count } from '../design/number.ts'
import { MemberMenu } from './member-menu.tsx'
import { NotFound } from './not-found.tsx'
import { ProjectMenu } from './project-menu.tsx'

const Finder = lazy(async () => ({ default: (await import('./finder.tsx')).Finder }))

/** Everything inside of a project: navigation at the side, or behind a button where it is narrow. */
export function Shell() {
  const projectId = useProjectId()
  const { data } = useQuery(projectsQuery)
  const isUnknown = data && !data.projects.some((project) => project.id === projectId)
  const [isFinding, setFinding] = useState(false)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      const isWanted = (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k'
      if (
        !isWanted ||
        document.querySelector('[data-open]:is([role=dialog], [role=alertdialog])')
      ) {
        return
      }
      event.preventDefault()
      setFinding(true)
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [])
  const find = () => setFinding(true)
  const close = () => setFinding(false)
  return (
    <div className="flex min-h-dvh flex-col lg:grid lg:grid-cols-[15rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only z-50 rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
      >
        Skip to content
      </a>
      <header className="unprinted sticky top-0 hidden h-dvh flex-col border-r border-line lg:flex">
        <Side onFind={find} />
      </header>
      <NarrowBar onFind={find} />
      <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
        {isUnknown ? <NotFound what="project" /> : <Outlet />}
      </main>
      <Dialog isOpen={isFinding} onClose={close} title="Find" width="wide">
        <Finder onClose={close} />
      </Dialog>
    </div>
  )
}

function NarrowBar({ onFind }: { onFind: () => void }) {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: going to another page closes it
  useEffect(() => setOpen(false), [pathname])
  return (
    <header className="unprinted sticky top-0 z-30 flex h-12 items-center gap-1 border-b border-line bg-canvas px-2 lg:hidden">
      <IconButton
        label="Menu"
        icon="menu"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(true)}
      />
      <SideDialog isOpen={isOpen} onClose={() => setOpen(false)}>
        <Side
          onFind={() => {
            setOpen(false)
            onFind()
          }}
        />
      </SideDialog>
      <Logo className="size-5" />
      <span className="font-semibold tracking-tight">Lethe</span>
    </header>
  )
}

function Side({ onFind }: { onFind: () => void }) {
  const { data: summary } = useSummary()
  const open = summary?.deletionsInProgress ?? 0
  const failed = summary?.deletionsFailed ?? 0
  return (
    <>
      <div className="flex items-center gap-2.5 px-4 pt-4 pb-3">
        <Logo />
        <span className="text-[0.9375rem] font-semibold tracking-tight">Lethe</span>
      </div>
      <div className="px-2 pb-2">
        <ProjectMenu />
        <button
          type="button"
          aria-keyshortcuts="Control+K Meta+K"
          onClick={onFind}
          className="mt-1 flex h-8 w-full items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-sunken hover:text-ink"
        >
          <Icon name="search" className="size-[1.125rem]" />
          <span className="flex-1 text-left">Find</span>
          <kbd className="font-sans text-xs">
            {/Mac|iP/.test(navigator.platform) ? '⌘K' : 'Ctrl K'}
          </kbd>
        </button>
      </div>
      <nav aria-label="Project" className="flex-1 overflow-y-auto px-2 py-1">
        <ul className="grid gap-0.5">
          <Item to="" icon="home" label="Home" />
          <Item to="persons" icon="persons" label="People" />
          <Item to="sessions" icon="sessions" label="Sessions" />
          <Item
            to="deletions"
            icon="deletions"
            label="Deletions"
            note={
              failed > 0
                ? { text: count(failed), words: `${count(failed)} failed`, tone: 'text-danger' }
                : open > 0
                  ? { text: count(open), words: `${count(open)} in progress`, tone: 'text-warn' }
                  : undefined
            }
          />
        </ul>
        <ul className="mt-4 grid gap-0.5 border-t border-line pt-4">
          <Item to="install" icon="install" label="Install" />
          <Item to="settings" icon="settings" label="Settings" />
        </ul>
      </nav>
      <div className="border-t border-line p-2">
        <MemberMenu />
      </div>
    </>
  )
}

interface Note {
  text: string
  words: string
  tone: string
}

function Item({
  to,
  icon,
  label,
  note,
}: {
  to: '' | 'persons' | 'sessions' | 'deletions' | 'install' | 'settings'
  icon: IconName
  label: string
  note?: Note | undefined
}) {
  const projectId = useProjectId()
  return (
    <li>
      <Link
        to={to === '' ? '/projects/$projectId' : `/projects/$projectId/${to}`}
        params={{ projectId }}
        className="flex h-8 items-center gap-2.5 rounded-md px-2.5 font-medium"
        activeProps={{ className: 'bg-accent-soft text-accent', 'aria-current': 'page' }}
        inactiveProps={{ className: 'text-muted hover:bg-sunken hover:text-ink' }}
        activeOptions={{ includeSearch: false, exact: to === '' }}
      >
        <Icon name={icon} className="size-[1.125rem]" />
        <span className="flex-1">{label}</span>
        {note && (
          <span className={`text-xs tabular ${note.tone}`}>
            <span aria-hidden="true">{note.text}</span>
            <span className="sr-only">, {note.words}</span>
          </span>
        )}
      </Link>
    </li>
  )
}
