import type { PersonDetail } from '@lethe/contract/dashboard-persons.ts'
import { Outlet } from '@tanstack/react-router'
import { useState } from 'react'
import { codeOf } from '../api/call.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { DeleteDialog } from '../deletions/delete-dialog.tsx'
import { Button } from '../design/button.tsx'
import { CopyButton } from '../design/copy.tsx'
import { ExternalId, isVisible, nameOf } from '../design/name.tsx'
import { count } from '../design/number.ts'
import { BackLink, LinkTab, LinkTabs, useTitle } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { None } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { placeOf } from '../persons/query.ts'
import { StateChip } from '../persons/table.tsx'
import { NotFound } from '../shell/not-found.tsx'
import { DeletedPage } from './deleted.tsx'
import { DeletionPanel } from './deletion-panel.tsx'
import { usePerson, usePersonPath } from './query.ts'

export function Person() {
  useTitle('Person')
  const projectId = useProjectId()
  const { data, error, refetch } = usePerson()
  if (codeOf(error) === 'person_not_found') return <NotFound what="person" />
  return (
    <div className="mx-auto w-full max-w-[72rem] px-4 py-6 sm:px-8">
      <BackLink
        to="/projects/$projectId/persons"
        params={{ projectId }}
        search={placeOf(projectId)}
      >
        People
      </BackLink>
      {data?.person ? (
        <PersonPage person={data.person} deletion={data.deletion} />
      ) : data?.deletion ? (
        <DeletedPage deletion={data.deletion} />
      ) : (
        <Awaited
          error={error}
          title="The person could not be loaded"
          retry={refetch}
          rows={7}
          isCard
        />
      )}
    </div>
  )
}

function PersonPage({
  person,
  deletion,
}: {
  person: PersonDetail
  deletion: Parameters<typeof DeletedPage>[0]['deletion'] | null
}) {
  return (
    <>
      <PersonHead person={person} />
      {deletion && <DeletionPanel person={person} deletion={deletion} />}
      <div className="card">
        <div className="border-b border-line">
          <PersonTabs person={person} />
        </div>
        <Outlet />
      </div>
    </>
  )
}

function PersonHead({ person }: { person: PersonDetail }) {
  const mayDelete = useMay('persons.delete')
  const [isDeleting, setDeleting] = useState(false)
  const shown = nameOf(person)
  return (
    <header className="mb-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
            <h1 className="min-w-0 break-words whitespace-pre-wrap">
              <bdi>{shown}</bdi>
            </h1>
            <StateChip state={person.state} />
          </div>
          {isVisible(person.email) && person.email !== shown && (
            <p className="mt-0.5 flex items-center gap-1 text-muted">
              <bdi className="break-all">{person.email}</bdi>
              <CopyButton text={person.email} label="Copy email" />
            </p>
          )}
        </div>
        {person.state === 'present' && (
          <Button
            icon="deletions"
            look="dangerQuiet"
            className="border border-line bg-surface shadow-low"
            disabledReason={mayDelete ? undefined : needsPermission['persons.delete']}
            onClick={() => setDeleting(true)}
          >
            Delete…
          </Button>
        )}
      </div>
      <dl className="mt-4 flex flex-wrap gap-x-10 gap-y-3">
        <HeadFact name="External ID">
          <span className="flex items-center gap-1">
            <ExternalId id={person.externalId} className="break-all whitespace-pre-wrap" />
            <CopyButton text={person.externalId} label="Copy external ID" />
          </span>
        </HeadFact>
        <HeadFact name="Last seen">
          {person.lastSeenAt ? <Time at={person.lastSeenAt} as="ago" /> : <None />}
        </HeadFact>
        <HeadFact name="Created">
          <Time at={person.createdAt} />
        </HeadFact>
        <HeadFact name="Updated">
          <Time at={person.updatedAt} />
        </HeadFact>
      </dl>
      <DeleteDialog persons={isDeleting ? [person] : []} onClose={() => setDeleting(false)} />
    </header>
  )
}

function HeadFact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="mt-0.5">{children}</dd>
    </div>
  )
}

function PersonTabs({ person }: { person: PersonDetail }) {
  const params = usePersonPath()
  const base = '/projects/$projectId/persons/$personId'
  return (
    <LinkTabs label="About this person">
      <LinkTab to={base} params={params} activeOptions={{ exact: true }}>
        Sessions <TabCount number={person.sessions} />
      </LinkTab>
      <LinkTab to={`${base}/properties`} params={params}>
        Properties <TabCount number={Object.keys(person.properties).length} />
      </LinkTab>
      <LinkTab to={`${base}/browsers`} params={params}>
        Browsers <TabCount number={person.browsers} />
      </LinkTab>
      <LinkTab to={`${base}/activity`} params={params}>
        Activity
      </LinkTab>
    </LinkTabs>
  )
}

function TabCount({ number }: { number: number }) {
  return <span className="text-sm font-normal text-muted tabular">{count(number)}</span>
}
