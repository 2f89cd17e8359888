import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useProjectId } from '../api/projects.ts'
import { Spinner } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { useShortcut } from '../shell/shortcut.ts'
import { areShortcutsOn } from '../shell/theme.ts'
import type { PersonsSearch } from './query.ts'

const pauseMilliseconds = 160

export function PersonFilters({
  search,
  isSearching,
  onlyId,
}: {
  search: PersonsSearch
  isSearching: boolean
  /** The person that is found, where it is one. */
  onlyId: string | undefined
}) {
  return (
    <div className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2.5">
      <SearchField search={search} isSearching={isSearching} onlyId={onlyId} />
      <nav aria-label="Filter people" className="flex flex-wrap gap-1">
        <StateLink search={search} state={undefined} label="All" />
        <StateLink search={search} state="deleting" label="Being deleted" />
        <StateLink search={search} state="deletion_failed" label="Deletion failed" />
      </nav>
    </div>
  )
}

function SearchField({
  search,
  isSearching,
  onlyId,
}: {
  search: PersonsSearch
  isSearching: boolean
  onlyId: string | undefined
}) {
  const projectId = useProjectId()
  const navigate = useNavigate({ from: '/projects/$projectId/persons' })
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(search.search ?? '')
  const asked = useRef(search.search ?? '')
  useShortcut('/', () => {
    input.current?.focus()
    input.current?.select()
  })

  // Back and forward, and links, change the address without anybody typing.
  useEffect(() => {
    if (asked.current === (search.search ?? '')) return
    asked.current = search.search ?? ''
    setText(asked.current)
  }, [search.search])

  useEffect(() => {
    if (text === asked.current) return
    const timer = setTimeout(() => {
      const isFirst = asked.current === ''
      asked.current = text
      const { state } = search
      void navigate({
        search: { ...(text && { search: text }), ...(state && { state }) },
        replace: !isFirst,
        resetScroll: false,
      })
    }, pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text, search, navigate])

  return (
    <search className="relative w-full sm:w-80">
      <Icon
        name="search"
        className="pointer-events-none absolute top-1/2 left-2.5 size-4 -translate-y-1/2 text-muted"
      />
      <input
        ref={input}
        type="search"
        aria-label="Search people by external ID, name or email"
        aria-keyshortcuts={areShortcutsOn() ? '/' : undefined}
        placeholder="Search external ID, name, email"
        maxLength={200}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') setText('')
          const isFound = text !== '' && text === asked.current && !isSearching
          if (event.key === 'Enter' && isFound && onlyId !== undefined) {
            void navigate({
              to: '/projects/$projectId/persons/$personId',
              params: { projectId, personId: onlyId },
            })
          }
        }}
        className="field pr-9 pl-8.5"
      />
      <span className="pointer-events-none absolute top-1/2 right-2.5 -translate-y-1/2 text-muted">
        {isSearching ? (
          <Spinner />
        ) : (
          text === '' &&
          areShortcutsOn() && (
            <kbd className="rounded border border-line px-1.5 font-sans text-xs">/</kbd>
          )
        )}
      </span>
    </search>
  )
}

function StateLink({
  search,
  state,
  label,
}: {
  search: PersonsSearch
  state: PersonsSearch['state'] | undefined
  label: string
}) {
  const projectId = useProjectId()
  const isActive = search.state === state
  return (
    <Link
      to="/projects/$projectId/persons"
      params={{ projectId }}
      search={{ ...(search.search && { search: search.search }), ...(state && { state }) }}
      aria-current={isActive ? 'true' : undefined}
      className={`rounded-md px-2.5 py-1 text-sm font-medium ${isActive ? 'bg-accent-soft text-accent' : 'text-muted hover:bg-sunken hover:text-ink'}`}
    >
      {label}
    </Link>
  )
}
