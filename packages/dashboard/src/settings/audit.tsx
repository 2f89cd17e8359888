import { listMembers } from '@lethe/contract/dashboard-members.ts'
import { type AuditEntry, auditActions } from '@lethe/contract/dashboard-system.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { reading } from '../api/queries.ts'
import { Choice, Days, FilterBar, useFilters } from '../design/filters.tsx'
import { List } from '../design/list.tsx'
import { Panel, useTitle } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { ExportLink } from '../shell/export-link.tsx'
import { type AuditSearch, auditExport, auditList } from './audit-query.ts'
import { actionTexts } from './audit-words.ts'

/** Who did what to whom in this installation, and from where. */
export function Audit() {
  useTitle('Audit log')
  const projectId = useProjectId()
  const search = useSearch({ from: '/signed-in/projects/$projectId/settings/audit' })
  const list = useLiveList(auditList(projectId, search), (page) => page.entries)
  return (
    <Panel
      title="Audit log"
      description="Everything members do, in all projects of this installation. Property values are not logged."
      actions={<ExportLink href={auditExport(projectId, search)}>CSV</ExportLink>}
    >
      <Filters search={search} />
      <div className="border-t border-line">
        <List
          list={list}
          names={['entry', 'entries']}
          empty={<Empty icon="list" title="No entries match" />}
          isRemembered
        >
          {(rows) => <AuditTable entries={rows} />}
        </List>
      </div>
    </Panel>
  )
}

const all = ['', 'All'] as const

function Filters({ search }: { search: AuditSearch }) {
  const { data } = useQuery(reading(listMembers, {}))
  const filters = useFilters(search)
  const { set } = filters
  const members = data?.members.map(({ id, name }) => [id, name] as const) ?? []
  const isFormer = search.member && !members.some(([id]) => id === search.member)
  const former = isFormer ? [[search.member ?? '', formerName(search.member ?? '')] as const] : []
  return (
    <FilterBar filters={filters} className="border-t border-line px-4 py-3">
      <Choice
        label="Action"
        value={search.action}
        options={[all, ...auditActions.map((one) => [one, actionTexts[one]] as const)]}
        onChange={(action) => set({ action })}
      />
      <Choice
        label="Member"
        value={search.member}
        options={[all, ...members, ...former]}
        onChange={(member) => set({ member })}
      />
      <Days from={search.from} to={search.to} onChange={set} />
      {search.person && (
        <p className="pb-1.5 text-sm text-muted">About person {search.person} in this project</p>
      )}
    </FilterBar>
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
          <Head from="md">To whom</Head>
          <Head from="lg">From</Head>
          <Head from="md">Details</Head>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <Row key={entry.id}>
            <Cell from="sm" className="text-muted">
              <Time at={entry.at} />
            </Cell>
            <Cell from="sm" className="max-w-0 w-[18%] truncate">
              <Who entry={entry} />
            </Cell>
            <Cell>
              <What entry={entry} />
              <span className="block text-sm text-muted sm:hidden">
                {whoOf(entry) && `${whoOf(entry)}, `}
                <Time at={entry.at} />
              </span>
            </Cell>
            <Cell from="md">
              <Whom entry={entry} />
            </Cell>
            <Cell from="lg" className="font-mono text-xs text-muted">
              {entry.addressRange ?? <None />}
            </Cell>
            <Cell from="md" className="max-w-0 w-[26%] truncate text-sm text-muted">
              {detailsText(entry) || <None />}
            </Cell>
          </Row>
        ))}
      </tbody>
    </Table>
  )
}

function whoOf({ member, key }: AuditEntry): string | undefined {
  if (member) return member.name ?? formerName(member.id)
  return key ? `Key ${key.name ?? key.id}` : undefined
}

/** A former member is shown by id alone. */
function formerName(id: string): string {
  return `Former member ${id.slice(0, 8)}`
}

/** Who did it, as a way to everything else they did. */
function Who({ entry }: { entry: AuditEntry }) {
  const projectId = useProjectId()
  const text = whoOf(entry)
  if (text === undefined) return <None />
  if (!entry.member) return text
  return (
    <Link
      to="/projects/$projectId/settings/audit"
      params={{ projectId }}
      search={{ member: entry.member.id }}
      className="link"
    >
      {text}
    </Link>
  )
}

function Whom({ entry: { personId, projectId } }: { entry: AuditEntry }) {
  if (personId === null || projectId === null) return <None />
  return (
    <Link
      to="/projects/$projectId/persons/$personId"
      params={{ projectId, personId }}
      className="link font-mono text-xs"
    >
      {personId}
    </Link>
  )
}

function What({ entry }: { entry: AuditEntry }) {
  const here = useProjectId()
  const text = actionTexts[entry.action] ?? entry.action
  const { subject } = entry
  const projectId = entry.projectId ?? here
  if (subject?.kind === 'session' && subject.id) {
    return (
      <Link
        to="/projects/$projectId/sessions/$sessionId"
        params={{ projectId, sessionId: subject.id }}
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
