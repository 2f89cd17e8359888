import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { projectsQuery, useProjectId, useSummary } from '../api/projects.ts'
import { IconButton } from '../design/button.tsx'
import { SideDialog } from '../design/dialog.tsx'
import { Icon, type IconName, Logo } from '../design/icon.tsx'
import { count } from '../design/number.ts'
import { MemberMenu } from './member-menu.tsx'
import { NotFound } from './not-found.tsx'
import { ProjectMenu } from './project-menu.tsx'

/** Everything inside of a project: navigation at the side, or behind a button where it is narrow. */
export function Shell() {
  const projectId = useProjectId()
  const { data } = useQuery(projectsQuery)
  const isUnknown = data && !data.projects.some((project) => project.id === projectId)
  return (
    <div className="flex min-h-dvh flex-col lg:grid lg:grid-cols-[15rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only z-50 rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
      >
        Skip to the content
      </a>
      <header className="sticky top-0 hidden h-dvh flex-col border-r border-line lg:flex">
        <Side />
      </header>
      <NarrowBar />
      <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
        {isUnknown ? <NotFound what="project" /> : <Outlet />}
      </main>
    </div>
  )
}

function NarrowBar() {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  // biome-ignore lint/correctness/useExhaustiveDependencies: going to another page closes it
  useEffect(() => setOpen(false), [pathname])
  return (
    <header className="sticky top-0 z-30 flex h-12 items-center gap-1 border-b border-line bg-canvas px-2 lg:hidden">
      <IconButton
        label="Menu"
        icon="menu"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        onClick={() => setOpen(true)}
      />
      <SideDialog isOpen={isOpen} onClose={() => setOpen(false)}>
        <Side />
      </SideDialog>
      <Logo className="size-5" />
      <span className="font-semibold tracking-tight">Lethe</span>
    </header>
  )
}

function Side() {
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
      </div>
      <nav aria-label="Project" className="flex-1 overflow-y-auto px-2 py-1">
        <ul className="grid gap-0.5">
          <Item to="persons" icon="persons" label="Persons" />
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
  to: 'persons' | 'sessions' | 'deletions' | 'install' | 'settings'
  icon: IconName
  label: string
  note?: Note | undefined
}) {
  const projectId = useProjectId()
  return (
    <li>
      <Link
        to={`/projects/$projectId/${to}`}
        params={{ projectId }}
        className="flex h-8 items-center gap-2.5 rounded-md px-2.5 font-medium"
        activeProps={{ className: 'bg-accent-soft text-accent', 'aria-current': 'page' }}
        inactiveProps={{ className: 'text-muted hover:bg-sunken hover:text-ink' }}
        activeOptions={{ includeSearch: false }}
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
