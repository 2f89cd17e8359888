import { useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { Choice, Days, FilterBar, TextFilter, useFilters } from '../design/filters.tsx'
import { List } from '../design/list.tsx'
import { PageHead } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { LimitLine } from '../home/limit-line.tsx'
import { type SessionsSearch, sessionsList } from './query.ts'
import { SessionTable } from './table.tsx'

export function Sessions() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/sessions' })
  const filters = useFilters(search)
  const list = useLiveList(sessionsList(projectId, search), (page) => page.sessions)
  return (
    <div className="mx-auto w-full max-w-[84rem] px-4 py-6 sm:px-8">
      <PageHead title="Sessions" />
      <LimitLine />
      <SessionFilters
        search={search}
        hasCountries={list.rows?.some(({ country }) => country) ?? false}
      />
      <div className="card overflow-clip">
        <List
          list={list}
          names={['session', 'sessions']}
          empty={<NoSessions isFiltered={filters.isAny} />}
          first={search.sort && 'First '}
          isRemembered
        >
          {(rows) => <SessionTable sessions={rows} />}
        </List>
      </div>
    </div>
  )
}

function NoSessions({ isFiltered }: { isFiltered: boolean }) {
  const projectId = useProjectId()
  if (isFiltered) {
    return (
      <Empty
        icon="search"
        title="No sessions match"
        actions={
          <LinkButton to="/projects/$projectId/sessions" params={{ projectId }}>
            Show all sessions
          </LinkButton>
        }
      />
    )
  }
  return (
    <Empty
      icon="sessions"
      title="No sessions yet"
      actions={
        <LinkButton to="/projects/$projectId/install" params={{ projectId }} look="primary">
          Install the recorder
        </LinkButton>
      }
    >
      A session is one visit, from arriving to leaving. It appears seconds after it starts.
    </Empty>
  )
}

const choices = [
  [
    'who',
    'Who',
    [
      ['', 'Everyone'],
      ['identified', 'Identified'],
      ['anonymous', 'Anonymous'],
      ['before', 'Before sign-in'],
      ['after', 'After sign-in'],
    ],
  ],
  [
    'length',
    'Length',
    [
      ['', 'Any'],
      ['10', '10 seconds or more'],
      ['60', '1 minute or more'],
      ['300', '5 minutes or more'],
    ],
  ],
  [
    'with',
    'With',
    [
      ['', 'Anything'],
      ['errors', 'Errors'],
      ['failed_requests', 'Failed requests'],
      ['rage_clicks', 'Rage clicks'],
      ['dead_clicks', 'Dead clicks'],
    ],
  ],
  [
    'family',
    'Browser',
    [
      ['', 'Any'],
      ['chrome', 'Chrome'],
      ['edge', 'Edge'],
      ['firefox', 'Firefox'],
      ['safari', 'Safari'],
    ],
  ],
  [
    'device',
    'Device',
    [
      ['', 'Any'],
      ['desktop', 'Desktop'],
      ['mobile', 'Mobile'],
    ],
  ],
  [
    'sort',
    'Sort by',
    [
      ['', 'Newest'],
      ['longest', 'Longest'],
      ['most_pages', 'Most pages'],
      ['most_errors', 'Most errors'],
    ],
  ],
] as const

function SessionFilters({
  search,
  hasCountries,
}: {
  search: SessionsSearch
  /** Whether the service seems to have a database of countries. */
  hasCountries: boolean
}) {
  const filters = useFilters(search)
  const { set } = filters
  return (
    <FilterBar filters={filters} className="mb-3">
      <TextFilter
        label="First page"
        initial={search.page}
        onChange={(page) => set({ page })}
        placeholder="/checkout"
        className="w-40"
      />
      <TextFilter
        label="Person property"
        initial={search.property}
        onChange={(property) => set({ property })}
        placeholder="plan=pro"
        className="w-40"
      />
      {(hasCountries || search.country) && (
        <TextFilter
          label="Country"
          initial={search.country}
          onChange={(country) => set({ country: country.toUpperCase() })}
          placeholder="AT"
          className="w-20"
        />
      )}
      {choices.map(([name, label, options]) => (
        <Choice
          key={name}
          label={label}
          value={search[name]}
          options={options}
          onChange={(value) => set({ [name]: value })}
        />
      ))}
      <Days from={search.from} to={search.to} onChange={set} />
      {search.browser && (
        <span className="flex h-9 items-center text-sm text-muted">
          Browser <code className="ml-1 font-mono">{search.browser.slice(0, 8)}</code>
        </span>
      )}
    </FilterBar>
  )
}
