import { getSession } from '@lethe/contract/dashboard-sessions.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { codeOf } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { LinkButton } from '../design/button.tsx'
import { Chip, Tag } from '../design/chip.tsx'
import { nameOf } from '../design/name.tsx'
import { bytesText } from '../design/number.ts'
import { BackLink, useTitle } from '../design/page.tsx'
import { Awaited, Empty } from '../design/states.tsx'
import { durationText, Time } from '../design/time.tsx'
import { momentOf, type SessionDetail } from './query.ts'
import { Replay } from './replay.tsx'
import { browserText, countryText } from './user-agent.ts'

const from = '/signed-in/projects/$projectId/sessions/$sessionId'

/** One session, to be watched. */
export function Session() {
  useTitle('Session')
  const params = useParams({ from })
  const { data, error, refetch } = useQuery({
    ...reading(getSession, { params }),
    // Also one that has ended: it goes off the screen when its person is erased.
    refetchInterval: ({ state }) => (codeOf(state.error) ? false : liveMilliseconds),
  })
  const isGone = codeOf(error) === 'session_not_found'
  return (
    <div className="flex min-h-full flex-col px-4 py-5 sm:px-6 xl:h-dvh">
      <BackLink to="/projects/$projectId/sessions" params={{ projectId: params.projectId }}>
        Sessions
      </BackLink>
      {isGone ? (
        <Gone wasShown={data !== undefined} />
      ) : data ? (
        <>
          <SessionHead detail={data} />
          <Watch key={params.sessionId} detail={data} />
        </>
      ) : (
        <Awaited
          error={error}
          title="The session could not be loaded"
          retry={refetch}
          rows={6}
          isCard
        />
      )}
    </div>
  )
}

function Gone({ wasShown }: { wasShown: boolean }) {
  const projectId = useProjectId()
  return (
    <Empty
      isPage
      icon="deletions"
      title={wasShown ? 'This recording was just deleted' : 'Recording not found'}
      actions={
        <LinkButton to="/projects/$projectId/sessions" params={{ projectId }} look="primary">
          Go to Sessions
        </LinkButton>
      }
    >
      {wasShown
        ? 'Its person was erased, or its retention period ended.'
        : 'It was deleted with its person, its retention period ended, or the address is wrong.'}
    </Empty>
  )
}

function SessionHead({ detail: { session } }: { detail: SessionDetail }) {
  const projectId = useProjectId()
  const { person } = session
  return (
    <header className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-1">
      <h1 className="min-w-0 text-lg">
        {person ? (
          <Link
            to="/projects/$projectId/persons/$personId"
            params={{ projectId, personId: person.id }}
            className="rounded-sm break-words hover:text-accent hover:underline"
          >
            <bdi>{nameOf(person)}</bdi>
          </Link>
        ) : (
          'Anonymous visitor'
        )}
      </h1>
      {session.isLive && (
        <Chip tone="ok" isMoving>
          Live
        </Chip>
      )}
      {session.isBeforeIdentification && <Tag>before sign-in</Tag>}
      {person?.isBeingDeleted && (
        <Chip tone="warn" isMoving>
          Being deleted
        </Chip>
      )}
      <p className="flex flex-wrap gap-x-3 text-sm text-muted tabular">
        <Time at={session.startedAt} />
        <span>{durationText(session.seconds)}</span>
        <span>{browserText(session.userAgent)}</span>
        {session.country && <span>{countryText(session.country)}</span>}
        <span>{bytesText(session.bytes)}</span>
      </p>
    </header>
  )
}

function Watch({ detail }: { detail: SessionDetail }) {
  const { sessionId } = useParams({ from })
  const { t, tab: asked } = useSearch({ from })
  const navigate = useNavigate({ from: '/projects/$projectId/sessions/$sessionId' })
  const [start, setStart] = useState(0)
  if (detail.tabs.length === 0) {
    return (
      <div className="card">
        <Empty icon="sessions" title="No data received for this session">
          {detail.session.isLive
            ? 'It has just started. This page updates automatically.'
            : 'The visitor left before anything was sent, or a blocker prevented it.'}
        </Empty>
      </div>
    )
  }
  return (
    <Replay
      key={`${sessionId} ${start}`}
      detail={detail}
      tabId={asked}
      startAt={momentOf(t)}
      onRestart={() => setStart((before) => before + 1)}
      onTab={(tab) =>
        void navigate({
          search: ({ tab: _, ...before }) => ({ ...before, ...(tab && { tab }) }),
          replace: true,
          resetScroll: false,
        })
      }
    />
  )
}
