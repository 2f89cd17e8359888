import { type Deletion, exportDeletions } from '@lethe/contract/dashboard-deletions.ts'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { memo, useState } from 'react'
import { pathOf } from '../api/call.ts'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { Button, LinkButton } from '../design/button.tsx'
import { Choice, Days, FilterBar, TextFilter, useFilters } from '../design/filters.tsx'
import { List } from '../design/list.tsx'
import { ExternalId } from '../design/name.tsx'
import { count } from '../design/number.ts'
import { PageHead } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { ExportLink } from '../shell/export-link.tsx'
import { DeletionDrawer } from './drawer.tsx'
import { Requester, Scope, StatusChip } from './parts.tsx'
import { type DeletionsSearch, deletionQuery, deletionsList } from './query.ts'
import { VerifyDialog } from './verify-dialog.tsx'

const from = '/projects/$projectId/deletions'

/** Every deletion job there was: the proof that they were done. */
export function Deletions() {
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/deletions' })
  const navigate = useNavigate({ from })
  const [isVerifying, setVerifying] = useState(false)
  const { job, pages: _, ...filters } = search
  const list = useLiveList(deletionsList(projectId, filters), (page) => page.deletions)
  return (
    <div className="mx-auto w-full max-w-[84rem] px-4 py-6 sm:px-8">
      <PageHead
        title="Deletions"
        actions={
          <>
            <Button icon="shield" onClick={() => setVerifying(true)}>
              Verify a receipt
            </Button>
            <ExportLink
              href={pathOf(exportDeletions, {
                params: { projectId },
                query: deletionQuery(filters),
              })}
            >
              CSV
            </ExportLink>
          </>
        }
      >
        Every request to erase a person, with its signed receipt.
      </PageHead>
      <DeletionFilters search={search} />
      <div className="card overflow-clip">
        <List
          list={list}
          names={['deletion', 'deletions']}
          empty={<NoDeletions isFiltered={Object.keys(filters).length > 0} />}
          isRemembered
        >
          {(rows) => <DeletionTable deletions={rows} search={search} />}
        </List>
      </div>
      <DeletionDrawer
        jobId={job}
        onClose={() => {
          const { job: _, ...rest } = search
          void navigate({ search: rest, resetScroll: false })
        }}
      />
      <VerifyDialog isOpen={isVerifying} onClose={() => setVerifying(false)} />
    </div>
  )
}

const states = [
  ['', 'All'],
  ['open', 'In progress'],
  ['completed', 'Completed'],
  ['failed', 'Failed'],
] as const

const kinds = [
  ['', 'All'],
  ['no', 'Deleted'],
  ['yes', 'Kept'],
] as const

function DeletionFilters({ search }: { search: DeletionsSearch }) {
  const filters = useFilters(search)
  const { set } = filters
  return (
    <FilterBar filters={filters} className="mb-3">
      <Choice
        label="State"
        value={search.status}
        options={states}
        onChange={(status) => set({ status })}
      />
      <Choice
        label="Recordings"
        value={search.keep}
        options={kinds}
        onChange={(keep) => set({ keep })}
      />
      <TextFilter
        label="External ID (exact match)"
        initial={search.externalId}
        onChange={(externalId) => set({ externalId })}
        className="w-56 font-mono"
      />
      <Days from={search.from} to={search.to} onChange={set} />
    </FilterBar>
  )
}

function NoDeletions({ isFiltered }: { isFiltered: boolean }) {
  const projectId = useProjectId()
  if (isFiltered) {
    return (
      <Empty
        icon="search"
        title="No deletions match"
        actions={
          <LinkButton to={`/projects/$projectId/deletions`} params={{ projectId }}>
            Show all deletions
          </LinkButton>
        }
      />
    )
  }
  return (
    <Empty
      icon="deletions"
      title="No deletions yet"
      actions={
        <LinkButton to="/projects/$projectId/persons" params={{ projectId }}>
          Go to People
        </LinkButton>
      }
    >
      When someone asks to be erased, delete them on their page or with the API. Every request is
      listed here with its attempts and its signed receipt.
    </Empty>
  )
}

function DeletionTable({ deletions, search }: { deletions: Deletion[]; search: DeletionsSearch }) {
  return (
    <Table label="Deletions">
      <thead>
        <tr>
          <Head>External ID</Head>
          <Head>State</Head>
          <Head from="md">Scope</Head>
          <Head from="xl">Requested by</Head>
          <Head from="sm">Requested</Head>
          <Head from="lg">Ended</Head>
          <Head isNumber from="md">
            Attempts
          </Head>
          <Head isNumber from="lg">
            Recordings removed
          </Head>
        </tr>
      </thead>
      <tbody>
        {deletions.map((deletion) => (
          <DeletionRow key={deletion.job.id} deletion={deletion} search={search} />
        ))}
      </tbody>
    </Table>
  )
}

const DeletionRow = memo(function DeletionRow({
  deletion,
  search,
}: {
  deletion: Deletion
  search: DeletionsSearch
}) {
  const { job, attempts, attemptsMaximum, removed, failedAt, requestedBy } = deletion
  const endedAt = job.completedAt ?? failedAt
  return (
    <Row leads>
      <Cell className="w-[40%] max-w-0 md:w-[30%] xl:w-[22%]">
        <Link
          data-row
          from={from}
          search={{ ...search, job: job.id }}
          resetScroll={false}
          className="block cut rounded-sm font-medium -outline-offset-1 group-hover:text-accent"
        >
          <ExternalId id={job.externalId} className="whitespace-pre" />
        </Link>
      </Cell>
      <Cell>
        <StatusChip status={job.status} />
      </Cell>
      <Cell from="md">
        <Scope keepRecordings={job.keepRecordings} />
      </Cell>
      <Cell from="xl" className="max-w-0 w-[26%] cut">
        <Requester by={requestedBy} />
      </Cell>
      <Cell from="sm" className="text-muted">
        <Time at={job.createdAt} />
      </Cell>
      <Cell from="lg" className="text-muted">
        {endedAt ? <Time at={endedAt} /> : <None />}
      </Cell>
      <Cell isNumber from="md">
        {attempts} <span className="text-muted">of {attemptsMaximum}</span>
      </Cell>
      <Cell isNumber from="lg">
        {removed.sessions > 0 ? count(removed.sessions) : <None />}
      </Cell>
    </Row>
  )
})
