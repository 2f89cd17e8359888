import { listPersonActivity, type PersonActivity } from '@lethe/contract/dashboard-persons.ts'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMay } from '../api/me.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Icon, type IconName } from '../design/icon.tsx'
import { Awaited } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { usePersonPath } from './query.ts'

/** As many as the server gives: the newest. */
const entriesMaximum = 100

export function PersonActivities() {
  const params = usePersonPath()
  const mayAudit = useMay('audit.read')
  const { data, error, refetch } = useQuery({
    ...reading(listPersonActivity, { params }),
    refetchInterval: liveMilliseconds,
  })
  if (!data) {
    return (
      <Awaited
        error={error}
        title="Activity could not be loaded"
        retry={refetch}
        rows={4}
        className="h-7"
      />
    )
  }
  return (
    <>
      <ol className="px-4 py-4">
        {data.activity.map((entry) => (
          <li key={keyOf(entry)} className="flex items-center gap-3 py-1.5">
            <Icon name={icons[entry.kind]} className="size-4 text-muted" />
            <span className="min-w-0 flex-1 break-words">
              <What entry={entry} />
            </span>
            <span className="text-sm text-muted">
              <Time at={entry.at} />
            </span>
          </li>
        ))}
      </ol>
      {mayAudit && (
        <p className="border-t border-line px-4 py-3 text-sm">
          <Link
            to="/projects/$projectId/settings/audit"
            params={{ projectId: params.projectId }}
            search={{ person: params.personId }}
            className="link"
          >
            What members and keys did about this person
          </Link>
        </p>
      )}
      {data.activity.length >= entriesMaximum && (
        <p className="border-t border-line px-4 py-3 text-sm text-muted">
          Latest {entriesMaximum} entries. Sessions, browsers and deletions have complete lists of
          their own.
        </p>
      )}
    </>
  )
}

const icons: Record<PersonActivity['kind'], IconName> = {
  created: 'plus',
  browser_linked: 'browser',
  session: 'sessions',
  properties_edited: 'pencil',
  deletion_requested: 'deletions',
  deletion_failed: 'warning',
}

function keyOf(entry: PersonActivity): string {
  const id = 'sessionId' in entry ? entry.sessionId : 'jobId' in entry ? entry.jobId : ''
  return `${entry.kind} ${entry.at} ${id}`
}

function What({ entry }: { entry: PersonActivity }) {
  const params = usePersonPath()
  switch (entry.kind) {
    case 'created':
      return 'Created'
    case 'browser_linked':
      return (
        <>
          Identified in browser{' '}
          <code className="font-mono text-sm">{entry.browserId.slice(0, 8)}</code>
        </>
      )
    case 'session':
      return (
        <Link
          to="/projects/$projectId/sessions/$sessionId"
          params={{ projectId: params.projectId, sessionId: entry.sessionId }}
          className="link"
        >
          Session started
        </Link>
      )
    case 'properties_edited':
      return `Properties edited by ${entry.memberName ?? 'a former member'}`
    case 'deletion_requested':
    case 'deletion_failed':
      return (
        <Link
          to="/projects/$projectId/deletions"
          params={{ projectId: params.projectId }}
          search={{ job: entry.jobId }}
          className="link"
        >
          {entry.kind === 'deletion_failed'
            ? 'Deletion failed'
            : `Deletion requested, ${entry.keepRecordings ? 'keeping recordings' : 'with recordings'}`}
        </Link>
      )
  }
}
