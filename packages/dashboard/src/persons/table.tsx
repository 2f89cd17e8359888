import type { PersonSummary } from '@lethe/contract/dashboard-persons.ts'
import { Link } from '@tanstack/react-router'
import { type Dispatch, memo, type SetStateAction, useCallback } from 'react'
import { useProjectId } from '../api/projects.ts'
import { Chip } from '../design/chip.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Checkbox } from '../design/field.tsx'
import { ExternalId, isVisible, nameOf, shownId } from '../design/name.tsx'
import { count } from '../design/number.ts'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'

/** Sessions are counted up to here; more are "1,000+". */
const countedMaximum = 1_000

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
    <Table label="Persons">
      <thead>
        <tr>
          {isChoosing && (
            <Head className="w-8 pr-0!">
              <Checkbox
                aria-label="Choose all persons of the list"
                checked={all}
                ref={(box) => {
                  if (box) box.indeterminate = some
                }}
                onChange={() => onChoose(new Set(all ? [] : choosable.map(({ id }) => id)))}
              />
            </Head>
          )}
          <Head>Person</Head>
          <Head from="lg">E-mail</Head>
          <Head from="md">externalId</Head>
          <Head isNumber from="sm">
            Sessions
          </Head>
          <Head from="xl">Last seen</Head>
          <Head from="lg">Created</Head>
          <Head>State</Head>
        </tr>
      </thead>
      {partsOf(persons).map((part, index, parts) => (
        <tbody
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts are their places
          key={index}
          className={index < parts.length - 1 ? 'isolate [&>tr>td]:border-b!' : 'isolate'}
        >
          {part.map((person) => (
            <PersonRow
              key={person.id}
              person={person}
              choosing={isChoosing ? choose : undefined}
              isChosen={chosen.has(person.id) && person.state !== 'deleting'}
            />
          ))}
        </tbody>
      ))}
    </Table>
  )
}

/**
 * A long list in parts, each of which the browser paints by itself: what changes in one of them, as
 * the row under the pointer, leaves the others alone while scrolling. A short one is a single part,
 * so that its rows never move from one part to the next.
 */
function partsOf(persons: PersonSummary[]): PersonSummary[][] {
  const size = persons.length > 200 ? 50 : 200
  const count = Math.max(1, Math.ceil(persons.length / size))
  return Array.from({ length: count }, (_, part) => persons.slice(part * size, (part + 1) * size))
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
        <Cell className="pr-0!">
          <Checkbox
            aria-label={`Choose ${shown}`}
            checked={isChosen}
            disabled={person.state === 'deleting'}
            onChange={(event) => choosing(person.id, event.target.checked)}
          />
        </Cell>
      )}
      <Cell className="w-[60%] max-w-0 sm:w-[34%] md:w-[24%]">
        <Link
          data-row
          to="/projects/$projectId/persons/$personId"
          params={{ projectId, personId: person.id }}
          className="block cut rounded-sm font-medium -outline-offset-1 group-hover:text-accent"
        >
          <bdi>{shown}</bdi>
        </Link>
        {shown !== shownId(person.externalId) && (
          <span className="block cut text-sm text-muted md:hidden">
            <bdi>{shownId(person.externalId)}</bdi>
          </span>
        )}
      </Cell>
      <Cell from="lg" className="w-[25%] max-w-0 cut">
        {isVisible(person.email) ? <bdi>{person.email}</bdi> : <None />}
      </Cell>
      <Cell from="md" className="w-[20%] max-w-0">
        <span className="flex items-center gap-1">
          <ExternalId id={person.externalId} className="cut whitespace-pre" />
          <CopyButton
            text={person.externalId}
            label="Copy the externalId"
            className="text-transparent! group-hover:text-muted! focus-visible:text-muted!"
          />
        </span>
      </Cell>
      <Cell isNumber from="sm">
        {person.sessions === 0 ? (
          <None />
        ) : (
          `${count(person.sessions)}${person.sessions >= countedMaximum ? '+' : ''}`
        )}
      </Cell>
      <Cell from="xl">
        {person.lastSeenAt ? <Time at={person.lastSeenAt} as="ago" /> : <None />}
      </Cell>
      <Cell from="lg" className="text-muted">
        <Time at={person.createdAt} />
      </Cell>
      <Cell className="w-0">
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
      return <Chip tone="quiet">Active</Chip>
  }
}
