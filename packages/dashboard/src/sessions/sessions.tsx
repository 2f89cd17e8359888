import { useNavigate, useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { Days, Labelled } from '../deletions/filters.tsx'
import { Button, LinkButton } from '../design/button.tsx'
import { Select } from '../design/field.tsx'
import { counted } from '../design/number.ts'
import { PageHead } from '../design/page.tsx'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { ListEnd } from '../design/table.tsx'
import { type SessionsSearch, sessionsList } from './query.ts'
import { SessionTable } from './table.tsx'

export function Sessions() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/sessions' })
  const navigate = useNavigate({ from: '/projects/$projectId/sessions' })
  const { pages: _, ...filters } = search
  const list = useLiveList(sessionsList(projectId, search), (page) => page.sessions)
  const rows = list.rows ?? []
  const loadMore = async () => {
    await list.fetchNextPage()
    await navigate({
      search: { ...search, pages: list.pageCount + 1 },
      replace: true,
      resetScroll: false,
    })
  }
  return (
    <div className="mx-auto w-full max-w-[84rem] px-4 py-6 sm:px-8">
      <PageHead title="Sessions" />
      <SessionFilters search={search} />
      <div className="card overflow-clip">
        {list.isPending ? (
          <Skeletons rows={10} className="h-7" />
        ) : list.isError && !list.data ? (
          <ErrorPanel
            error={list.error}
            title="The sessions could not be loaded"
            retry={() => list.refetch()}
          />
        ) : rows.length === 0 ? (
          <NoSessions isFiltered={Object.keys(filters).length > 0} />
        ) : (
          <>
            <SessionTable sessions={rows} />
            <ListEnd
              hasMore={list.hasNextPage}
              isLoading={list.isFetchingNextPage}
              onMore={() => void loadMore()}
            >
              {list.hasNextPage ? 'The newest ' : ''}
              {counted(rows.length, 'session')}
            </ListEnd>
          </>
        )}
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
        title="No session matches"
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
      title="Nothing recorded yet"
      actions={
        <LinkButton to="/projects/$projectId/install" params={{ projectId }} look="primary">
          Install the recorder
        </LinkButton>
      }
    >
      A session is what one visitor did, from arriving to leaving. It appears seconds after it
      began.
    </Empty>
  )
}

function SessionFilters({ search }: { search: SessionsSearch }) {
  const navigate = useNavigate({ from: '/projects/$projectId/sessions' })
  const { pages: _, ...filters } = search
  const set = (part: { [K in keyof SessionsSearch]?: string }) => {
    const next = Object.entries({ ...filters, ...part }).filter(([, value]) => value)
    void navigate({ search: Object.fromEntries(next) as SessionsSearch, resetScroll: false })
  }
  return (
    <div className="mb-3 flex flex-wrap items-end gap-x-3 gap-y-2.5 max-sm:grid max-sm:grid-cols-2">
      <Labelled label="Who">
        {(id) => (
          <Select
            id={id}
            value={search.who ?? ''}
            onChange={(event) => set({ who: event.target.value })}
          >
            <option value="">Everybody</option>
            <option value="identified">Identified</option>
            <option value="anonymous">Anonymous</option>
          </Select>
        )}
      </Labelled>
      <Labelled label="Length">
        {(id) => (
          <Select
            id={id}
            value={search.length ?? ''}
            onChange={(event) => set({ length: event.target.value })}
          >
            <option value="">Any</option>
            <option value="10">10 seconds or more</option>
            <option value="60">1 minute or more</option>
            <option value="300">5 minutes or more</option>
          </Select>
        )}
      </Labelled>
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
