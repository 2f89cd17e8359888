import { useNavigate, useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { Days, Labelled, TextFilter } from '../deletions/filters.tsx'
import { Button, LinkButton } from '../design/button.tsx'
import { Select } from '../design/field.tsx'
import { List } from '../design/list.tsx'
import { PageHead } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { LimitLine } from '../home/limit-line.tsx'
import { type SessionsSearch, sessionsList } from './query.ts'
import { SessionTable } from './table.tsx'

export function Sessions() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/sessions' })
  const navigate = useNavigate({ from: '/projects/$projectId/sessions' })
  const { pages: _, ...filters } = search
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
          empty={<NoSessions isFiltered={Object.keys(filters).length > 0} />}
          first={search.sort && 'First '}
          remember={(pages) =>
            navigate({ search: { ...search, pages }, replace: true, resetScroll: false })
          }
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

const choices = {
  who: {
    label: 'Who',
    options: {
      '': 'Everyone',
      identified: 'Identified',
      anonymous: 'Anonymous',
      before: 'Before sign-in',
      after: 'After sign-in',
    },
  },
  length: {
    label: 'Length',
    options: {
      '': 'Any',
      10: '10 seconds or more',
      60: '1 minute or more',
      300: '5 minutes or more',
    },
  },
  with: {
    label: 'With',
    options: {
      '': 'Anything',
      errors: 'Errors',
      failed_requests: 'Failed requests',
      rage_clicks: 'Rage clicks',
      dead_clicks: 'Dead clicks',
    },
  },
  family: {
    label: 'Browser',
    options: { '': 'Any', chrome: 'Chrome', edge: 'Edge', firefox: 'Firefox', safari: 'Safari' },
  },
  device: { label: 'Device', options: { '': 'Any', desktop: 'Desktop', mobile: 'Mobile' } },
  sort: {
    label: 'Sort by',
    options: {
      '': 'Newest',
      longest: 'Longest',
      most_pages: 'Most pages',
      most_errors: 'Most errors',
    },
  },
} satisfies { [K in keyof SessionsSearch]?: { label: string; options: Record<string, string> } }

function SessionFilters({
  search,
  hasCountries,
}: {
  search: SessionsSearch
  /** Whether the service seems to have a database of countries. */
  hasCountries: boolean
}) {
  const navigate = useNavigate({ from: '/projects/$projectId/sessions' })
  const { pages: _, ...filters } = search
  const set = (part: { [K in keyof SessionsSearch]?: string }) => {
    const next = Object.entries({ ...filters, ...part }).filter(([, value]) => value)
    void navigate({ search: Object.fromEntries(next) as SessionsSearch, resetScroll: false })
  }
  const text = (
    name: 'page' | 'property' | 'country',
    label: string,
    placeholder: string,
    width = 'w-40',
  ) => (
    <Labelled label={label}>
      {(id) => (
        <TextFilter
          id={id}
          initial={search[name] ?? ''}
          onChange={(value) => set({ [name]: name === 'country' ? value.toUpperCase() : value })}
          className={width}
          placeholder={placeholder}
        />
      )}
    </Labelled>
  )
  return (
    <div className="mb-3 flex flex-wrap items-end gap-x-3 gap-y-2.5 max-sm:grid max-sm:grid-cols-2">
      {text('page', 'First page', '/checkout')}
      {text('property', 'Person property', 'plan=pro')}
      {(hasCountries || search.country) && text('country', 'Country', 'AT', 'w-20')}
      {Object.entries(choices).map(([name, { label, options }]) => (
        <Labelled key={name} label={label}>
          {(id) => (
            <Select
              id={id}
              value={search[name as keyof typeof choices] ?? ''}
              onChange={(event) => set({ [name]: event.target.value })}
            >
              {Object.entries(options)
                .sort(([one], [other]) => Number(other === '') - Number(one === ''))
                .map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
            </Select>
          )}
        </Labelled>
      ))}
      <Days from={search.from} to={search.to} onChange={set} />
      {search.browser && (
        <span className="flex h-9 items-center text-sm text-muted">
          Browser <code className="ml-1 font-mono">{search.browser.slice(0, 8)}</code>
        </span>
      )}
      {Object.keys(filters).length > 0 && (
        <Button look="quiet" onClick={() => void navigate({ search: {} })}>
          Clear
        </Button>
      )}
    </div>
  )
}
