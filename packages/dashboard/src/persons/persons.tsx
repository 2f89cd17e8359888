import type { PersonSummary } from '@lethe/contract/dashboard-persons.ts'
import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useLiveList } from '../api/live-list.ts'
import { useMay } from '../api/me.ts'
import { useProjectId, useSummary } from '../api/projects.ts'
import { DeletionBanner } from '../deletions/banner.tsx'
import { DeleteDialog } from '../deletions/delete-dialog.tsx'
import { Button, IconButton, LinkButton } from '../design/button.tsx'
import { List } from '../design/list.tsx'
import { count as shownCount } from '../design/number.ts'
import { PageHead } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { PersonFilters } from './filters.tsx'
import { keepPlace, personsList } from './query.ts'
import { PersonTable } from './table.tsx'

export function Persons() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/persons' })
  keepPlace(projectId, search)
  const list = useLiveList(personsList(projectId, search), (page) => page.persons)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [deleting, setDeleting] = useState<PersonSummary[]>([])
  const mayDelete = useMay('persons.delete')
  const rows = list.rows ?? []
  // People who left the list, or are being deleted by now, are no longer selected.
  const choosable = rows.filter((person) => person.state !== 'deleting')
  const picked = choosable.filter((person) => chosen.has(person.id))

  return (
    <div className="mx-auto w-full max-w-[84rem] px-4 py-6 sm:px-8">
      <PageHead title="People" />
      <DeletionBanner />
      <PersonFilters
        search={search}
        isSearching={list.isPlaceholderData}
        onlyId={rows.length === 1 ? rows[0]?.id : undefined}
      />
      <div className="card overflow-clip">
        <List
          list={list}
          names={['person', 'people']}
          empty={<NoPersons isFiltered={Boolean(search.search || search.state)} />}
          isRemembered
        >
          {(persons) => (
            <PersonTable
              persons={persons}
              choosable={mayDelete ? choosable : []}
              chosen={chosen}
              onChoose={setChosen}
            />
          )}
        </List>
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
        title="No people match"
        actions={
          <LinkButton to="/projects/$projectId/persons" params={{ projectId }}>
            Show all people
          </LinkButton>
        }
      >
        Search matches external ID, name and email exactly as typed.
      </Empty>
    )
  }
  return (
    <Empty
      icon="persons"
      title="No people yet"
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
            Create people from your backend
          </LinkButton>
        </>
      }
    >
      A person is created by the first call to <code className="font-mono text-sm">identify()</code>{' '}
      in a browser, or by your backend.
    </Empty>
  )
}

/** What can be done with the chosen persons; it lies over the list's end. */
function SelectionBar({
  count,
  onDelete,
  onClear,
}: {
  count: number
  onDelete: () => void
  onClear: () => void
}) {
  return (
    <section
      aria-label="Selected people"
      className={`sticky bottom-4 z-20 mt-4 flex justify-center ${count === 0 ? 'hidden' : ''}`}
    >
      <div className="flex items-center gap-3 rounded-xl border border-line bg-raised py-1.5 pr-1.5 pl-4 shadow-high">
        <span role="status" className="tabular">
          {shownCount(count)} selected
        </span>
        <Button size="small" look="danger" icon="deletions" onClick={onDelete}>
          Delete…
        </Button>
        <IconButton label="Clear selection" icon="close" onClick={onClear} />
      </div>
    </section>
  )
}
