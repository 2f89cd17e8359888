import { getPerson } from '@lethe/contract/dashboard-persons.ts'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useProjectId } from '../api/projects.ts'
import { reading } from '../api/queries.ts'
import { ExternalId, nameOf } from '../design/name.tsx'
import { textOf } from '../person/property-value.ts'
import type { SessionDetail } from './query.ts'

/** As many properties as fit beside a recording; all of them are on the person's page. */
const propertiesMaximum = 8

/** Whom the recording shows. */
export function PersonBeside({
  person,
}: {
  person: NonNullable<SessionDetail['session']['person']>
}) {
  const projectId = useProjectId()
  const params = { projectId, personId: person.id }
  const { data } = useQuery({ ...reading(getPerson, { params }), staleTime: 30_000 })
  const properties = Object.entries(data?.person?.properties ?? {})
  return (
    <details open className="border-b border-line px-4 py-2.5">
      <summary className="rounded-sm font-medium break-words">
        <bdi>{nameOf(person)}</bdi>
      </summary>
      <dl className="mt-1.5 grid max-h-44 grid-cols-[minmax(5rem,auto)_minmax(0,1fr)] gap-x-3 gap-y-0.5 overflow-y-auto text-sm">
        <dt className="text-muted">External ID</dt>
        <dd className="truncate">
          <ExternalId id={person.externalId} />
        </dd>
        {properties.slice(0, propertiesMaximum).map(([key, value]) => (
          <div key={key} className="contents">
            <dt className="truncate text-muted">{key}</dt>
            <dd className="truncate" title={textOf(value)}>
              {textOf(value)}
            </dd>
          </div>
        ))}
      </dl>
      <Link
        to="/projects/$projectId/persons/$personId"
        params={params}
        className="link mt-1.5 inline-block text-sm"
      >
        {properties.length > propertiesMaximum ? 'All properties' : 'Show person'}
      </Link>
    </details>
  )
}
