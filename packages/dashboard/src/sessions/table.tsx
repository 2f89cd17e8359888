import type { SessionSummary } from '@lethe/contract/dashboard-sessions.ts'
import { Link } from '@tanstack/react-router'
import { memo } from 'react'
import { useProjectId } from '../api/projects.ts'
import { Chip, Tag } from '../design/chip.tsx'
import { nameOf } from '../design/name.tsx'
import { count, counted } from '../design/number.ts'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { durationText, Time } from '../design/time.tsx'
import { browserText, countryText } from './user-agent.ts'

export function SessionTable({
  sessions,
  isOfPerson = false,
}: {
  sessions: SessionSummary[]
  /** On a person's page nobody has to be told whose they are. */
  isOfPerson?: boolean
}) {
  return (
    <Table label="Sessions">
      <thead>
        <tr>
          <Head>Started</Head>
          {!isOfPerson && <Head from="sm">Person</Head>}
          <Head from="md">Page</Head>
          <Head from="md">Issues</Head>
          <Head isNumber>Length</Head>
          <Head isNumber from="sm">
            Pages
          </Head>
          <Head from="lg">Browser</Head>
        </tr>
      </thead>
      <tbody>
        {sessions.map((session) => (
          <SessionRow key={session.id} session={session} isOfPerson={isOfPerson} />
        ))}
      </tbody>
    </Table>
  )
}

const SessionRow = memo(function SessionRow({
  session,
  isOfPerson,
}: {
  session: SessionSummary
  isOfPerson: boolean
}) {
  const projectId = useProjectId()
  return (
    <Row leads>
      <Cell>
        <span className="flex flex-wrap items-center gap-x-2.5 gap-y-0.5">
          <Link
            data-row
            to="/projects/$projectId/sessions/$sessionId"
            params={{ projectId, sessionId: session.id }}
            className="rounded-sm font-medium -outline-offset-1 group-hover:text-accent"
          >
            <Time at={session.startedAt} as="seconds" />
          </Link>
          {session.isLive && (
            <Chip tone="ok" isMoving>
              Live
            </Chip>
          )}
          {isOfPerson && session.isBeforeIdentification && <Tag>before sign-in</Tag>}
        </span>
        {!isOfPerson && (
          <span className="block max-w-44 cut text-sm text-muted sm:hidden">
            {session.person ? <bdi>{nameOf(session.person)}</bdi> : 'Anonymous'}
          </span>
        )}
      </Cell>
      {!isOfPerson && (
        <Cell from="sm" className="w-[34%] max-w-0">
          <span className="flex items-center gap-2.5">
            <span className="cut">
              <Whose session={session} />
            </span>
            {session.isBeforeIdentification && (
              <span className="max-xl:hidden">
                <Tag>before sign-in</Tag>
              </span>
            )}
          </span>
        </Cell>
      )}
      <Cell from="md" className="w-[26%] max-w-0 cut text-muted">
        {session.url ? pageText(session.url) : <None />}
      </Cell>
      <Cell from="md" className="min-w-44 text-sm text-danger">
        {troublesText(session) || <None />}
      </Cell>
      <Cell isNumber>{durationText(session.seconds)}</Cell>
      <Cell isNumber from="sm">
        {count(session.pages)}
      </Cell>
      <Cell from="lg" className="whitespace-nowrap text-muted">
        {browserText(session.userAgent)}
        {session.country && ` · ${countryText(session.country)}`}
      </Cell>
    </Row>
  )
})

function Whose({ session }: { session: SessionSummary }) {
  const projectId = useProjectId()
  const { person } = session
  if (!person) return <span className="text-muted">Anonymous</span>
  return (
    <Link
      to="/projects/$projectId/persons/$personId"
      params={{ projectId, personId: person.id }}
      className="rounded-sm hover:text-accent hover:underline"
    >
      <bdi>{nameOf(person)}</bdi>
    </Link>
  )
}

function troublesText({ errors, failedRequests, rageClicks }: SessionSummary): string {
  return [
    errors > 0 && counted(errors, 'error'),
    failedRequests > 0 && counted(failedRequests, 'failed request'),
    rageClicks > 0 && counted(rageClicks, 'rage click'),
  ]
    .filter(Boolean)
    .join(', ')
}

/** An address without its scheme, which says nothing. */
export function pageText(url: string): string {
  return url.replace(/^https?:\/\//, '')
}
