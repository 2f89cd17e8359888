import type { PersonSummary } from '@lethe/contract/dashboard-persons.ts'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useLiveList } from '../api/live-list.ts'
import { useMay } from '../api/me.ts'
import { useProjectId, useSummary } from '../api/projects.ts'
import { DeletionBanner } from '../deletions/banner.tsx'
import { DeleteDialog } from '../deletions/delete-dialog.tsx'
import { LinkButton } from '../design/button.tsx'
import { counted } from '../design/number.ts'
import { PageHead } from '../design/page.tsx'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { ListEnd } from '../design/table.tsx'
import { PersonFilters } from './filters.tsx'
import { keepPlace } from './place.ts'
import { personsList } from './query.ts'
import { SelectionBar } from './selection-bar.tsx'
import { PersonTable } from './table.tsx'

export function Persons() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/persons' })
  const navigate = useNavigate({ from: '/projects/$projectId/persons' })
  keepPlace(projectId, search)
  const list = useLiveList(personsList(projectId, search), (page) => page.persons)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [deleting, setDeleting] = useState<PersonSummary[]>([])
  const mayDelete = useMay('persons.delete')
  const rows = list.rows ?? []
  // Whoever left the list, or is being deleted by now, is chosen no more.
  const choosable = rows.filter((person) => person.state !== 'deleting')
  const picked = choosable.filter((person) => chosen.has(person.id))

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
      <PageHead title="Persons" />
      <DeletionBanner />
      <PersonFilters search={search} isSearching={list.isPlaceholderData} />
      <div className="card overflow-clip">
        {list.isPending ? (
          <Skeletons rows={10} className="h-7" />
        ) : list.isError && !list.data ? (
          <ErrorPanel
            error={list.error}
            title="The persons could not be loaded"
            retry={() => list.refetch()}
          />
        ) : rows.length === 0 ? (
          <NoPersons isFiltered={Boolean(search.search || search.state)} />
        ) : (
          <>
            <PersonTable
              persons={rows}
              choosable={mayDelete ? choosable : []}
              chosen={chosen}
              onChoose={setChosen}
            />
            <ListEnd
              hasMore={list.hasNextPage}
              isLoading={list.isFetchingNextPage}
              onMore={() => void loadMore()}
            >
              {list.hasNextPage
                ? `The newest ${counted(rows.length, 'person', 'persons')}`
                : counted(rows.length, 'person', 'persons')}
            </ListEnd>
          </>
        )}
      </div>
      <SelectionBar
        count={picked.length}
        onDelete={() => setDeleting(picked)}
        onClear={() => setChosen(new Set())}
      />
      <DeleteDialog
        persons={deleting}
        onClose={() => setDeleting([])}
        onDone={() => setChosen(new Set())}
      />
    </div>
  )
}

function NoPersons({ isFiltered }: { isFiltered: boolean }) {
  const projectId = useProjectId()
  const { data: summary } = useSummary()
  if (isFiltered && summary?.hasPersons !== false) {
    return (
      <Empty
        icon="search"
        title="Nobody matches"
        actions={
          <LinkButton to="/projects/$projectId/persons" params={{ projectId }}>
            Show all persons
          </LinkButton>
        }
      >
        The search looks for this text in externalId, name and email, as it is written.
      </Empty>
    )
  }
  return (
    <Empty
      icon="persons"
      title="No persons yet"
      actions={
        <>
          <LinkButton to="/projects/$projectId/install" params={{ projectId }} look="primary">
            Install the recorder
          </LinkButton>
          <LinkButton
            to="/projects/$projectId/install"
            params={{ projectId }}
            search={{ way: 'backend' }}
          >
            Send persons from your backend
          </LinkButton>
        </>
      }
    >
      A person appears with the first call of <code className="font-mono text-sm">identify()</code>{' '}
      in a browser, or when your backend creates one.
    </Empty>
  )
}
