import { useNavigate, useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { counted } from '../design/number.ts'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { ListEnd } from '../design/table.tsx'
import { personSessionsList } from '../sessions/query.ts'
import { SessionTable } from '../sessions/table.tsx'
import { usePersonPath } from './query.ts'

export function PersonSessions() {
  const { projectId, personId } = usePersonPath()
  const list = useLiveList(personSessionsList(projectId, personId), (page) => page.sessions)
  const search = useSearch({ from: '/signed-in/projects/$projectId/persons/$personId/' })
  const navigate = useNavigate({ from: '/projects/$projectId/persons/$personId/' })
  const rows = list.rows ?? []
  const loadMore = async () => {
    await list.fetchNextPage()
    await navigate({
      search: { ...search, pages: list.pageCount + 1 },
      replace: true,
      resetScroll: false,
    })
  }
  if (list.isPending) return <Skeletons rows={5} className="h-7" />
  if (list.isError && !list.data) {
    return (
      <ErrorPanel
        error={list.error}
        title="The sessions could not be loaded"
        retry={() => list.refetch()}
      />
    )
  }
  if (rows.length === 0) return <NoSessions />
  return (
    <>
      <SessionTable sessions={rows} isOfPerson />
      <ListEnd
        hasMore={list.hasNextPage}
        isLoading={list.isFetchingNextPage}
        onMore={() => void loadMore()}
      >
        {list.hasNextPage ? 'The newest ' : ''}
        {counted(rows.length, 'session')}
      </ListEnd>
    </>
  )
}

function NoSessions() {
  const projectId = useProjectId()
  return (
    <Empty
      icon="sessions"
      title="No sessions"
      actions={
        <LinkButton to="/projects/$projectId/install" params={{ projectId }}>
          How recording works
        </LinkButton>
      }
    >
      This person has not been recorded: no browser has called identify() with this externalId.
    </Empty>
  )
}
