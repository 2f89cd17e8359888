import { getSession } from '@lethe/contract/dashboard-sessions.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { type Body, codeOf } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { LinkButton } from '../design/button.tsx'
import { Chip, Tag } from '../design/chip.tsx'
import { Icon } from '../design/icon.tsx'
import { nameOf } from '../design/name.tsx'
import { bytesText } from '../design/number.ts'
import { useTitle } from '../design/page.tsx'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { durationText, Time } from '../design/time.tsx'
import { Replay } from './replay.tsx'
import { browserText } from './user-agent.ts'

const from = '/signed-in/projects/$projectId/sessions/$sessionId'

export type SessionDetail = Body<typeof getSession>

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
      <BackToSessions />
      {isGone ? (
        <Gone wasShown={data !== undefined} />
      ) : data ? (
        <>
          <SessionHead detail={data} />
          <Watch key={params.sessionId} detail={data} />
        </>
      ) : error ? (
        <div className="card">
          <ErrorPanel
            error={error}
            title="The session could not be loaded"
            retry={() => refetch()}
          />
        </div>
      ) : (
        <Skeletons rows={6} />
      )}
    </div>
  )
}

function BackToSessions() {
  const projectId = useProjectId()
  return (
    <Link
      to="/projects/$projectId/sessions"
      params={{ projectId }}
      className="mb-2 inline-flex w-fit items-center gap-1.5 rounded-sm text-sm font-medium text-muted hover:text-ink"
    >
      <Icon name="arrowLeft" className="size-3.5" />
      Sessions
    </Link>
  )
}

function Gone({ wasShown }: { wasShown: boolean }) {
  const projectId = useProjectId()
  return (
    <Empty
      isPage
      icon="deletions"
      title={wasShown ? 'This recording was deleted just now' : 'This recording is not there'}
      actions={
        <LinkButton to="/projects/$projectId/sessions" params={{ projectId }} look="primary">
          Go to the sessions
        </LinkButton>
      }
    >
      {wasShown
        ? 'Its person was erased, or its time to be kept was over.'
        : 'It was deleted with its person, its time to be kept was over, or the address is mistyped.'}
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
      {session.isBeforeIdentification && <Tag>before identification</Tag>}
      {person?.isBeingDeleted && (
        <Chip tone="warn" isMoving>
          Being deleted
        </Chip>
      )}
      <p className="flex flex-wrap gap-x-3 text-sm text-muted tabular">
        <Time at={session.startedAt} />
        <span>{durationText(session.seconds)}</span>
        <span>{browserText(session.userAgent)}</span>
        <span>{bytesText(session.bytes)}</span>
      </p>
    </header>
  )
}

function Watch({ detail }: { detail: SessionDetail }) {
  const { sessionId } = useParams({ from })
  const { t, tab: asked } = useSearch({ from })
  const navigate = useNavigate({ from: '/projects/$projectId/sessions/$sessionId' })
  const tab = detail.tabs.find(({ id }) => id === asked) ?? detail.tabs[0]
  if (!tab) {
    return (
      <div className="card">
        <Empty icon="sessions" title="Nothing of this session has arrived">
          {detail.session.isLive
            ? 'It has only begun. This page shows it as soon as something comes.'
            : 'The visitor left before anything could be sent, or a blocker kept it back.'}
        </Empty>
      </div>
    )
  }
  const startAt = Math.max(0, Number(t ?? 0) * 1_000) || 0
  return (
    <Replay
      key={`${sessionId} ${tab.id}`}
      detail={detail}
      tab={tab}
      startAt={startAt}
      onTab={(id) => void navigate({ search: { tab: id }, resetScroll: false })}
    />
  )
}
