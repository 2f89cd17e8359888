import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { Select } from './field.tsx'

/** The filters of a list as they stand in its address, beside the place that was come to. */
export function useFilters<Search extends object>(
  search: Search & { pages?: number; job?: string },
) {
  const navigate = useNavigate()
  const { pages: _, job: __, ...filters } = search
  return {
    isAny: Object.keys(filters).length > 0,
    set(part: { [K in keyof Search]?: string }) {
      const next = Object.entries({ ...filters, ...part }).filter(([, value]) => value)
      void navigate({ to: '.', search: Object.fromEntries(next) as never, resetScroll: false })
    },
    clear: () => void navigate({ to: '.', search: {} as never }),
  }
}

export function FilterBar({
  filters,
  className = '',
  children,
}: {
  filters: { isAny: boolean; clear: () => void }
  className?: string
  children: ReactNode
}) {
  return (
    <div
      className={`flex flex-wrap items-end gap-x-3 gap-y-2.5 max-sm:grid max-sm:grid-cols-2 ${className}`}
    >
      {children}
      {filters.isAny && (
        <Button look="quiet" onClick={filters.clear}>
          Clear
        </Button>
      )}
    </div>
  )
}

/** A filter of a few values; the first option is that there is none. */
export function Choice({
  label,
  value,
  options,
  onChange,
}: {
  label: string
  value: string | undefined
  options: readonly (readonly [value: string, text: string])[]
  onChange: (value: string) => void
}) {
  return (
    <Labelled label={label}>
      {(id) => (
        <Select
          id={id}
          className="max-w-56"
          value={value ?? ''}
          onChange={(event) => onChange(event.target.value)}
        >
          {options.map(([one, text]) => (
            <option key={one} value={one}>
              {text}
            </option>
          ))}
        </Select>
      )}
    </Labelled>
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

function Labelled({ label, children }: { label: string; children: (id: string) => ReactNode }) {
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
  label,
  initial = '',
  onChange,
  className = '',
  placeholder,
}: {
  label: string
  initial: string | undefined
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
    <Labelled label={label}>
      {(id) => (
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
      )}
    </Labelled>
  )
}
