import { listPersons } from '@lethe/contract/dashboard-persons.ts'
import { getSession, listSessions } from '@lethe/contract/dashboard-sessions.ts'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useId, useState } from 'react'
import { codeOf, send } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { Icon, type IconName } from '../design/icon.tsx'
import { nameOf, shownId } from '../design/name.tsx'
import { ErrorLine } from '../design/states.tsx'
import { dateText } from '../design/time.tsx'
import { pageText } from '../sessions/table.tsx'

/** What can be gone to. */
interface Found {
  to: string
  icon: IconName
  label: string
  note: string
}

const screens: [path: string, icon: IconName, label: string][] = [
  ['', 'home', 'Home'],
  ['/persons', 'persons', 'People'],
  ['/sessions', 'sessions', 'Sessions'],
  ['/deletions', 'deletions', 'Deletions'],
  ['/install', 'install', 'Install'],
  ['/settings', 'settings', 'Settings'],
]

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Finds a person, a session or a screen by what somebody types, and goes there. */
export function Finder({ onClose }: { onClose: () => void }) {
  const id = useId()
  const projectId = useProjectId()
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const wanted = useDeferredValue(text.trim())
  const { data, error, isFetching } = useQuery({
    queryKey: ['finder', projectId, wanted],
    queryFn: ({ signal }) => find(projectId, wanted, signal),
    enabled: wanted !== '',
    placeholderData: (before) => before,
  })
  const found = [...screensFor(projectId, wanted), ...((wanted && data) || [])]
  const current = Math.min(chosen, found.length - 1)
  const go = (one: Found | undefined) => {
    if (!one) return
    onClose()
    void navigate({ to: one.to })
  }
  useEffect(() => {
    document.getElementById(`${id}${current}`)?.scrollIntoView({ block: 'nearest' })
  }, [id, current])
  return (
    <>
      <input
        role="combobox"
        aria-label="Find"
        aria-expanded="true"
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={found[current] && `${id}${current}`}
        placeholder="Name, email, external ID, session ID or page"
        className="field"
        autoComplete="off"
        maxLength={200}
        value={text}
        onChange={(event) => {
          setText(event.target.value)
          setChosen(0)
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (event.key === 'Enter') go(found[current])
          else if (step && found.length > 0) {
            setChosen((current + step + found.length) % found.length)
          } else return
          event.preventDefault()
        }}
      />
      <div
        id={`${id}list`}
        role="listbox"
        aria-label="Results"
        className="mt-3 max-h-80 overflow-y-auto"
      >
        {found.map(({ to, icon, label, note }, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
          <div
            key={to}
            id={`${id}${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => go(found[index])}
            className={`flex min-h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1 ${index === current ? 'bg-accent-soft' : 'hover:bg-sunken'}`}
          >
            <Icon name={icon} className="text-muted" />
            <bdi className="min-w-0 flex-1 truncate">{label}</bdi>
            <span className="max-w-[45%] truncate text-sm text-muted">{note}</span>
          </div>
        ))}
      </div>
      <p role="status" className="px-2.5 text-sm text-muted">
        {found.length === 0 && (isFetching ? 'Searching…' : !error && 'Nothing found')}
      </p>
      <ErrorLine error={error} />
    </>
  )
}

function screensFor(projectId: string, wanted: string): Found[] {
  return screens
    .filter(([, , label]) => label.toLowerCase().includes(wanted.toLowerCase()))
    .map(([path, icon, label]) => ({ to: `/projects/${projectId}${path}`, icon, label, note: '' }))
}

async function find(projectId: string, wanted: string, signal: AbortSignal): Promise<Found[]> {
  const params = { projectId }
  const home = `/projects/${projectId}`
  if (uuid.test(wanted)) {
    const sessionId = wanted.toLowerCase()
    const found = await send(getSession, { params: { projectId, sessionId } }, signal).catch(
      (error: unknown) => {
        if (codeOf(error) === 'session_not_found') return undefined
        throw error
      },
    )
    if (found) return [sessionFound(home, found.session)]
  }
  const [{ persons }, { sessions }] = await Promise.all([
    send(listPersons, { params, query: { search: wanted, limit: 6 } }, signal),
    send(listSessions, { params, query: { page: wanted, limit: 6 } }, signal),
  ])
  return [
    ...persons.map((person) => ({
      to: `${home}/persons/${person.id}`,
      icon: 'persons' as const,
      label: nameOf(person),
      note: shownId(person.externalId),
    })),
    ...sessions.map((session) => sessionFound(home, session)),
  ]
}

function sessionFound(
  home: string,
  {
    id,
    person,
    url,
    startedAt,
  }: {
    id: string
    person: Parameters<typeof nameOf>[0] | null
    url: string | null
    startedAt: string
  },
): Found {
  return {
    to: `${home}/sessions/${id}`,
    icon: 'sessions',
    label: `${person ? nameOf(person) : 'Anonymous'}, ${dateText(startedAt)}`,
    note: url ? pageText(url) : '',
  }
}
