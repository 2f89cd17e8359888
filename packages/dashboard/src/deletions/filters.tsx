import { useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useRef, useState } from 'react'
import { Button } from '../design/button.tsx'
import { Select } from '../design/field.tsx'
import type { DeletionsSearch } from './query.ts'

export function DeletionFilters({ search }: { search: DeletionsSearch }) {
  const navigate = useNavigate({ from: '/projects/$projectId/deletions' })
  const { job: _, pages: __, ...filters } = search
  const set = (part: { [K in keyof DeletionsSearch]?: string }) => {
    const next = Object.entries({ ...filters, ...part }).filter(([, value]) => value)
    void navigate({ search: Object.fromEntries(next) as DeletionsSearch, resetScroll: false })
  }
  return (
    <div className="mb-3 flex flex-wrap items-end gap-x-3 gap-y-2.5 max-sm:grid max-sm:grid-cols-2">
      <Labelled label="State">
        {(id) => (
          <Select
            id={id}
            value={search.status ?? ''}
            onChange={(event) => set({ status: event.target.value })}
          >
            <option value="">All</option>
            <option value="open">In progress</option>
            <option value="completed">Completed</option>
            <option value="failed">Failed</option>
          </Select>
        )}
      </Labelled>
      <Labelled label="Recordings">
        {(id) => (
          <Select
            id={id}
            value={search.keep ?? ''}
            onChange={(event) => set({ keep: event.target.value })}
          >
            <option value="">All</option>
            <option value="no">Deleted</option>
            <option value="yes">Kept</option>
          </Select>
        )}
      </Labelled>
      <Labelled label="External ID (exact match)">
        {(id) => (
          <TextFilter
            id={id}
            initial={search.externalId ?? ''}
            onChange={(externalId) => set({ externalId })}
            className="w-56 font-mono"
          />
        )}
      </Labelled>
      <Days from={search.from} to={search.to} onChange={set} />
      {Object.keys(filters).length > 0 && (
        <Button look="quiet" onClick={() => void navigate({ search: {} })}>
          Clear
        </Button>
      )}
    </div>
  )
}

/** A filter by days, both of them included. */
export function Days({
  from,
  to,
  onChange,
}: {
  from: string | undefined
  to: string | undefined
  onChange: (part: { from?: string; to?: string }) => void
}) {
  return (
    <>
      <Labelled label="From">
        {(id) => <DayField id={id} day={from} onChange={(day) => onChange({ from: day })} />}
      </Labelled>
      <Labelled label="To">
        {(id) => <DayField id={id} day={to} onChange={(day) => onChange({ to: day })} />}
      </Labelled>
    </>
  )
}

/** A year that is being typed is one of the first centuries until its last digit is there. */
const firstYear = '1970'

function DayField({
  id,
  day = '',
  onChange,
}: {
  id: string
  day: string | undefined
  onChange: (day: string) => void
}) {
  const [shown, setShown] = useState(day)
  useEffect(() => setShown(day), [day])
  return (
    <input
      id={id}
      type="date"
      max="9999-12-31"
      className="field w-38 max-sm:w-full max-sm:min-w-0 max-sm:px-1.5 max-sm:text-sm"
      value={shown}
      onChange={({ target: { value } }) => {
        setShown(value)
        if (value === '' || value >= firstYear) onChange(value)
      }}
    />
  )
}

export function Labelled({
  label,
  children,
}: {
  label: string
  children: (id: string) => React.ReactNode
}) {
  const id = useId()
  return (
    <div className="grid min-w-0 gap-1">
      <label htmlFor={id} className="text-xs font-medium text-muted">
        {label}
      </label>
      {children(id)}
    </div>
  )
}

/** How long nothing is typed before it is asked for. */
const pauseMilliseconds = 250

/** A filter that is typed, and asked for when nothing more is typed. */
export function TextFilter({
  id,
  initial,
  onChange,
  className = '',
  placeholder,
}: {
  id: string
  initial: string
  onChange: (text: string) => void
  className?: string
  placeholder?: string
}) {
  const [text, setText] = useState(initial)
  const asked = useRef(initial)
  const change = useRef(onChange)
  change.current = onChange
  useEffect(() => {
    if (asked.current === initial) return
    asked.current = initial
    setText(initial)
  }, [initial])
  useEffect(() => {
    if (text === asked.current) return
    const timer = setTimeout(() => {
      asked.current = text
      change.current(text)
    }, pauseMilliseconds)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <input
      id={id}
      className={`field text-sm max-sm:w-full! ${className}`}
      placeholder={placeholder}
      // Characters of two units count twice here and once for the server.
      maxLength={400}
      autoComplete="off"
      spellCheck={false}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  )
}
