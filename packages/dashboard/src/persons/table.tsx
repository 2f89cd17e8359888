import type { PersonSummary } from '@lethe/contract/dashboard-persons.ts'
import { Link } from '@tanstack/react-router'
import { type Dispatch, memo, type SetStateAction, useCallback } from 'react'
import { useProjectId } from '../api/projects.ts'
import { Chip } from '../design/chip.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Checkbox } from '../design/field.tsx'
import { LongTable } from '../design/long-table.tsx'
import { ExternalId, isVisible, nameOf, shownId } from '../design/name.tsx'
import { count } from '../design/number.ts'
import { Cell, Head, None, Row } from '../design/table.tsx'
import { Time } from '../design/time.tsx'

/** Sessions are counted up to here; more are "1,000+". */
const countedMaximum = 1_000

const columns = {
  choice: 'flex-none pr-0!',
  person: 'flex-23',
  email: 'flex-24',
  externalId: 'flex-23',
  sessions: 'w-21 flex-none',
  lastSeen: 'w-26 flex-none',
  created: 'w-38 flex-none',
  // Where it is narrow, only a state that matters is shown, and takes what it needs.
  state: 'flex-none sm:w-36',
}

export function PersonTable({
  persons,
  choosable,
  chosen,
  onChoose,
}: {
  persons: PersonSummary[]
  choosable: PersonSummary[]
  chosen: ReadonlySet<string>
  onChoose: Dispatch<SetStateAction<ReadonlySet<string>>>
}) {
  const isChoosing = choosable.length > 0
  const all = choosable.length > 0 && choosable.every(({ id }) => chosen.has(id))
  const some = !all && choosable.some(({ id }) => chosen.has(id))
  const choose = useCallback(
    (id: string, isChosen: boolean) =>
      onChoose((before) => {
        const after = new Set(before)
        if (isChosen) after.add(id)
        else after.delete(id)
        return after
      }),
    [onChoose],
  )
  return (
    <LongTable
      label="People"
      rows={persons}
      idOf={({ id }) => id}
      head={
        <>
          {isChoosing && (
            <Head className={columns.choice}>
              <Checkbox
                aria-label="Select all people in the list"
                checked={all}
                ref={(box) => {
                  if (box) box.indeterminate = some
                }}
                onChange={() => onChoose(new Set(all ? [] : choosable.map(({ id }) => id)))}
              />
            </Head>
          )}
          <Head className={columns.person}>Person</Head>
          <Head from="lg" className={columns.email}>
            Email
          </Head>
          <Head from="md" className={columns.externalId}>
            External ID
          </Head>
          <Head isNumber from="sm" className={columns.sessions}>
            Sessions
          </Head>
          <Head from="xl" className={columns.lastSeen}>
            Last seen
          </Head>
          <Head from="xl" className={columns.created}>
            Created
          </Head>
          <Head className={columns.state}>
            <span className="max-sm:sr-only">State</span>
          </Head>
        </>
      }
    >
      {(person) => (
        <PersonRow
          key={person.id}
          person={person}
          choosing={isChoosing ? choose : undefined}
          isChosen={chosen.has(person.id) && person.state !== 'deleting'}
        />
      )}
    </LongTable>
  )
}

const PersonRow = memo(function PersonRow({
  person,
  choosing,
  isChosen,
}: {
  person: PersonSummary
  choosing: ((id: string, isChosen: boolean) => void) | undefined
  isChosen: boolean
}) {
  const projectId = useProjectId()
  const shown = nameOf(person)
  return (
    <Row leads className={isChosen ? 'bg-accent-soft/60' : ''}>
      {choosing && (
        <Cell className={columns.choice}>
          <Checkbox
            aria-label={`Select ${shown}`}
            checked={isChosen}
            disabled={person.state === 'deleting'}
            onChange={(event) => choosing(person.id, event.target.checked)}
          />
        </Cell>
      )}
      <Cell className={columns.person}>
        <Link
          data-row
          to="/projects/$projectId/persons/$personId"
          params={{ projectId, personId: person.id }}
          className="block cut rounded-sm whitespace-pre font-medium -outline-offset-1 group-hover:text-accent"
        >
          <bdi>{shown}</bdi>
        </Link>
        <span className="block cut whitespace-pre text-sm text-muted md:hidden">
          <bdi>{isVisible(person.email) ? person.email : shownId(person.externalId)}</bdi>
          {person.lastSeenAt && (
            <>
              {' · '}
              <Time at={person.lastSeenAt} as="ago" />
            </>
          )}
        </span>
      </Cell>
      <Cell from="lg" className={`cut ${columns.email}`}>
        {isVisible(person.email) ? <bdi>{person.email}</bdi> : <None />}
      </Cell>
      <Cell from="md" className={columns.externalId}>
        <span className="flex items-center gap-1">
          <ExternalId id={person.externalId} className="cut whitespace-pre" />
          <CopyButton
            text={person.externalId}
            label="Copy external ID"
            className="text-transparent! group-hover:text-muted! focus-visible:text-muted!"
          />
        </span>
      </Cell>
      <Cell isNumber from="sm" className={columns.sessions}>
        {person.sessions === 0 ? (
          <None />
        ) : (
          `${count(person.sessions)}${person.sessions >= countedMaximum ? '+' : ''}`
        )}
      </Cell>
      <Cell from="xl" className={columns.lastSeen}>
        {person.lastSeenAt ? <Time at={person.lastSeenAt} as="ago" /> : <None />}
      </Cell>
      <Cell from="xl" className={`text-muted ${columns.created}`}>
        <Time at={person.createdAt} />
      </Cell>
      <Cell className={columns.state}>
        <StateChip state={person.state} />
      </Cell>
    </Row>
  )
})

export function StateChip({ state }: { state: PersonSummary['state'] }) {
  switch (state) {
    case 'deleting':
      return (
        <Chip tone="warn" isMoving>
          Being deleted
        </Chip>
      )
    case 'deletion_failed':
      return <Chip tone="danger">Deletion failed</Chip>
    case 'present':
      return (
        <Chip tone="quiet">
          <span className="max-sm:sr-only">Active</span>
        </Chip>
      )
  }
}
