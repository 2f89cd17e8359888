import {
  type AuditAction,
  type AuditEntry,
  auditActions,
} from '@lethe/contract/dashboard-system.ts'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { Labelled } from '../deletions/filters.tsx'
import { Button } from '../design/button.tsx'
import { Select } from '../design/field.tsx'
import { counted } from '../design/number.ts'
import { Panel, useTitle } from '../design/page.tsx'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { Cell, Head, ListEnd, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { auditList } from './audit-query.ts'
import { actionTexts } from './audit-words.ts'

/** Who did what in this installation. */
export function Audit() {
  useTitle('Audit log')
  const search = useSearch({ from: '/signed-in/projects/$projectId/settings/audit' })
  const navigate = useNavigate({ from: '/projects/$projectId/settings/audit' })
  const { action } = search
  const list = useLiveList(auditList(search), (page) => page.entries)
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
    <Panel
      title="Audit log"
      description="Everything members do, in every project of this installation. Values of persons’ properties are not in it."
    >
      <div className="flex flex-wrap items-end gap-3 border-t border-line px-4 py-3">
        <Labelled label="Action">
          {(id) => (
            <Select
              id={id}
              value={action ?? ''}
              onChange={(event) =>
                void navigate({
                  search: event.target.value ? { action: event.target.value as AuditAction } : {},
                  resetScroll: false,
                })
              }
            >
              <option value="">All</option>
              {auditActions.map((one) => (
                <option key={one} value={one}>
                  {actionTexts[one]}
                </option>
              ))}
            </Select>
          )}
        </Labelled>
        {action && (
          <Button look="quiet" onClick={() => void navigate({ search: {} })}>
            Clear
          </Button>
        )}
      </div>
      <div className="border-t border-line">
        {list.isPending ? (
          <Skeletons rows={8} className="h-7" />
        ) : list.isError && !list.data ? (
          <ErrorPanel
            error={list.error}
            title="The audit log could not be loaded"
            retry={() => list.refetch()}
          />
        ) : rows.length === 0 ? (
          <Empty icon="list" title="Nothing of this kind happened" />
        ) : (
          <>
            <AuditTable entries={rows} />
            <ListEnd
              hasMore={list.hasNextPage}
              isLoading={list.isFetchingNextPage}
              onMore={() => void loadMore()}
            >
              {list.hasNextPage ? 'The newest ' : ''}
              {counted(rows.length, 'entry', 'entries')}
            </ListEnd>
          </>
        )}
      </div>
    </Panel>
  )
}

function AuditTable({ entries }: { entries: AuditEntry[] }) {
  return (
    <Table label="Audit log">
      <thead>
        <tr>
          <Head from="sm">When</Head>
          <Head from="sm">Who</Head>
          <Head>What</Head>
          <Head from="md">Details</Head>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Row key={entry.id}>
            <Cell from="sm" className="text-muted">
              <Time at={entry.at} />
            </Cell>
            <Cell from="sm" className="max-w-0 w-[22%] truncate">
              {whoOf(entry) ?? <None />}
            </Cell>
            <Cell>
              <What entry={entry} />
              <span className="block text-sm text-muted sm:hidden">
                {whoOf(entry) && `${whoOf(entry)}, `}
                <Time at={entry.at} />
              </span>
            </Cell>
            <Cell from="md" className="max-w-0 w-[34%] truncate text-sm text-muted">
              {detailsText(entry) || <None />}
            </Cell>
          </Row>
        ))}
      </tbody>
    </Table>
  )
}

function whoOf({ member }: AuditEntry): string | undefined {
  return member ? (member.name ?? 'a former member') : undefined
}

function What({ entry }: { entry: AuditEntry }) {
  const here = useProjectId()
  const text = actionTexts[entry.action] ?? entry.action
  const { subject } = entry
  const projectId = entry.projectId ?? here
  if (subject?.kind === 'person' && subject.id) {
    return (
      <Link
        to="/projects/$projectId/persons/$personId"
        params={{ projectId, personId: subject.id }}
        className="link"
      >
        {text}
      </Link>
    )
  }
  if (subject?.kind === 'deletion_job' && subject.id) {
    return (
      <Link
        to="/projects/$projectId/deletions"
        params={{ projectId }}
        search={{ job: subject.id }}
        className="link"
      >
        {text}
      </Link>
    )
  }
  return text
}

function detailsText({ details }: AuditEntry): string {
  return Object.entries(details)
    .map(([name, value]) => `${wordsOf(name)}: ${valueText(value)}`)
    .join(' · ')
}

/** The names are those of the contract: `mayDeletePersons`, in words. */
function wordsOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function valueText(value: AuditEntry['details'][string]): string {
  if (value === null) return 'none'
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)
}
