import { getHome } from '@lethe/contract/dashboard-home.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, type LinkComponentProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Body } from '../api/call.ts'
import { useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { reading } from '../api/queries.ts'
import { DeletionBanner } from '../deletions/banner.tsx'
import { Chip, HealthChip } from '../design/chip.tsx'
import { bytesText, count, counted } from '../design/number.ts'
import { PageHead } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { LimitLine } from './limit-line.tsx'

type HomeState = Body<typeof getHome>

const refreshMilliseconds = 30_000

/** How the project does; each figure leads to what it counts. */
export function Home() {
  const projectId = useProjectId()
  const { data, error, refetch } = useQuery({
    ...reading(getHome, { params: { projectId } }),
    refetchInterval: refreshMilliseconds,
  })
  return (
    <div className="mx-auto w-full max-w-[72rem] px-4 py-6 sm:px-8">
      <PageHead title="Home" />
      <DeletionBanner />
      <LimitLine />
      {data ? (
        <Figures home={data} />
      ) : (
        <Awaited error={error} title="Home could not be loaded" retry={refetch} rows={5} isCard />
      )}
    </div>
  )
}

function Figures({ home }: { home: HomeState }) {
  const params = { projectId: useProjectId() }
  const base = '/projects/$projectId'
  const maySystem = useMay('system.read')
  const { days, deletions, lastSession } = home
  const total = (of: 'sessions' | 'people' | 'bytes') => days.reduce((sum, day) => sum + day[of], 0)
  return (
    <div className="grid gap-4 sm:grid-cols-2 xl:grid-cols-3">
      <Card to={`${base}/sessions`} params={params} title="Sessions, last 14 days">
        <Figure>{count(total('sessions'))}</Figure>
        <Days days={days} of="sessions" />
      </Card>
      <Card to={`${base}/persons`} params={params} title="New people, last 14 days">
        <Figure>{count(total('people'))}</Figure>
        <Days days={days} of="people" />
      </Card>
      <Card to={`${base}/settings/privacy`} params={params} title="Stored recordings">
        <Figure>{bytesText(home.storedBytes)}</Figure>
        <Days days={days} of="bytes" />
      </Card>
      <Card
        to={`${base}/deletions`}
        params={params}
        search={deletions.failed > 0 ? { status: 'failed' } : { status: 'open' }}
        title="Deletions"
      >
        <Figure>{counted(deletions.open, 'deletion')} in progress</Figure>
        <p className="flex flex-wrap gap-2">
          {deletions.failed > 0 && <Chip tone="danger">{count(deletions.failed)} failed</Chip>}
          {deletions.overdue > 0 && <Chip tone="danger">{count(deletions.overdue)} overdue</Chip>}
          {deletions.failed + deletions.overdue === 0 && (
            <Chip tone="quiet">None failed or overdue</Chip>
          )}
        </p>
        {deletions.oldestOpenAt && (
          <p className="mt-2 text-sm text-muted">
            Oldest requested <Time at={deletions.oldestOpenAt} as="ago" />
          </p>
        )}
      </Card>
      {lastSession ? (
        <Card
          to={`${base}/sessions/$sessionId`}
          params={{ ...params, sessionId: lastSession.id }}
          title="Latest recording"
        >
          <Figure>
            <Time at={lastSession.startedAt} as="ago" />
          </Figure>
          <p className="text-muted">Watch recording</p>
        </Card>
      ) : (
        <Card to={`${base}/install`} params={params} title="Latest recording">
          <Figure>None yet</Figure>
          <p className="text-muted">Install the recorder</p>
        </Card>
      )}
      <Card {...(maySystem ? { to: `${base}/settings/system`, params } : {})} title="Health">
        <dl className="mt-1 grid gap-1.5">
          <Part name="Deletion worker" state={home.worker} />
          <Part name="Storage" state={home.storage} />
        </dl>
      </Card>
    </div>
  )
}

function Card({
  title,
  children,
  ...link
}: { title: string; children: ReactNode } & LinkComponentProps) {
  const inside = (
    <>
      <h2 className="text-sm font-medium text-muted">{title}</h2>
      {children}
    </>
  )
  if (!link.to) return <section className="card p-4">{inside}</section>
  return (
    <Link {...link} className="card block p-4 hover:border-edge">
      {inside}
    </Link>
  )
}

function Figure({ children }: { children: ReactNode }) {
  return <p className="mt-1 mb-2 text-xl font-semibold tabular">{children}</p>
}

function Part({ name, state }: { name: string; state: HomeState['worker'] }) {
  return (
    <div className="flex items-center justify-between gap-3">
      <dt>{name}</dt>
      <dd>
        <HealthChip state={state} />
      </dd>
    </div>
  )
}

const shownDay = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
})

/** A bar a day; the figures are read out, and shown where one points. */
function Days({ days, of }: { days: HomeState['days']; of: 'sessions' | 'people' | 'bytes' }) {
  const text = (amount: number) => (of === 'bytes' ? bytesText(amount) : count(amount))
  const most = Math.max(1, ...days.map((day) => day[of]))
  return (
    <ol className="flex h-14 items-end gap-1" aria-label="By day">
      {days.map((day) => {
        const words = `${shownDay.format(new Date(day.day))}: ${text(day[of])}`
        return (
          <li key={day.day} title={words} className="flex h-full flex-1 items-end">
            <span className="sr-only">{words}</span>
            <span
              aria-hidden="true"
              className={`min-h-0.5 w-full rounded-t-sm border-t-2 ${day[of] > 0 ? 'border-accent bg-accent-soft' : 'border-line'}`}
              style={{ height: `${(day[of] / most) * 100}%` }}
            />
          </li>
        )
      })}
    </ol>
  )
}
