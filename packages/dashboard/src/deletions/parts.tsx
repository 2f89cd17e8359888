import type { Deletion, DeletionAttempt } from '@lethe/contract/dashboard-deletions.ts'
import { Chip, Tag } from '../design/chip.tsx'
import { bytesText, count, counted } from '../design/number.ts'
import { durationText, Time, useNow } from '../design/time.tsx'
import { errorText, statusWords, stepText } from './words.ts'

export function StatusChip({ status }: { status: Deletion['job']['status'] }) {
  const { text, tone } = statusWords[status]
  return (
    <Chip tone={tone} isMoving={status === 'running'}>
      {text}
    </Chip>
  )
}

export function Scope({ keepRecordings }: { keepRecordings: boolean }) {
  return <Tag>{keepRecordings ? 'Recordings kept' : 'With recordings'}</Tag>
}

export function Requester({ by }: { by: Deletion['requestedBy'] }) {
  if (by.kind === 'command') return <>the command line</>
  if (by.kind === 'ledger') return <>the erasure ledger, after a backup was restored</>
  if (by.kind === 'key') return <>the API{by.name ? `, key “${by.name}”` : ''}</>
  return <>{by.name ?? 'a former member'}</>
}

/** What goes on right now, in one sentence. */
export function Progress({ deletion }: { deletion: Deletion }) {
  const { attempts, attemptsMaximum, nextAttemptAt, step, job } = deletion
  if (job.status === 'pending') return <>Waiting for a worker.</>
  const attempt = `Attempt ${Math.max(attempts, 1)} of ${attemptsMaximum}`
  if (nextAttemptAt) {
    return (
      <>
        {attempt} failed. The next one starts <Countdown to={nextAttemptAt} />.
      </>
    )
  }
  return (
    <>
      {attempt} in progress{step && `: ${stepText(step)}`}.
    </>
  )
}

export function Countdown({ to }: { to: string }) {
  const now = useNow(500)
  const seconds = Math.ceil((new Date(to).getTime() - now) / 1_000)
  return (
    <span className="font-medium tabular">
      {seconds > 0 ? <>in {durationText(seconds)}</> : 'now'}
    </span>
  )
}

export function LastError({ deletion }: { deletion: Deletion }) {
  const { lastErrorCode, step } = deletion
  if (!lastErrorCode) return null
  return (
    <>
      {errorText(lastErrorCode)} <code className="font-mono text-sm">{lastErrorCode}</code>
      {step && <span className="text-muted"> while {stepText(step)}</span>}
    </>
  )
}

/** `12 recordings, 40 chunks (3.1 MB), 3 browsers`, or that there was nothing. */
export function removedText({ removed }: Pick<Deletion, 'removed'>): string {
  const { keys, sessions, browsers, bytes, blobs } = removed
  const parts = [
    keys > 0 && counted(keys, 'key'),
    sessions > 0 && counted(sessions, 'recording'),
    blobs > 0 && `${counted(blobs, 'blob')} (${bytesText(bytes)})`,
    browsers > 0 && counted(browsers, 'browser'),
  ].filter(Boolean)
  return parts.length > 0 ? parts.join(', ') : 'nothing'
}

const outcomes = {
  running: { text: 'Running', tone: 'warn' },
  completed: { text: 'Completed', tone: 'ok' },
  failed: { text: 'Failed', tone: 'danger' },
  lost: { text: 'Lost', tone: 'danger' },
} as const

/** Every attempt there was, the newest first, and when the next one comes. */
export function Attempts({
  attempts,
  deletion,
}: {
  attempts: DeletionAttempt[]
  deletion: Deletion
}) {
  const newestFirst = attempts.toReversed()
  return (
    <ol className="grid">
      {deletion.nextAttemptAt && (
        <TimelineItem isHollow>
          <p className="font-medium">
            Attempt {deletion.attempts + 1} starts <Countdown to={deletion.nextAttemptAt} />
          </p>
        </TimelineItem>
      )}
      {newestFirst.map((attempt) => (
        <TimelineItem key={attempt.number} tone={outcomes[attempt.outcome].tone}>
          <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
            <span className="font-medium tabular">Attempt {attempt.number}</span>
            <Chip tone={outcomes[attempt.outcome].tone} isMoving={attempt.outcome === 'running'}>
              {outcomes[attempt.outcome].text}
            </Chip>
            <span className="text-sm text-muted">
              <Time at={attempt.startedAt} as="clock" />
              {attempt.endedAt && ` · ${tookText(attempt.startedAt, attempt.endedAt)}`}
            </span>
          </p>
          <AttemptEnd attempt={attempt} />
          {attempt.outcome !== 'completed' && (
            <p className="text-sm text-muted">Removed in this attempt: {removedText(attempt)}.</p>
          )}
        </TimelineItem>
      ))}
      <TimelineItem isLast>
        <p>
          <span className="font-medium">Requested</span>{' '}
          <span className="text-muted">
            by <Requester by={deletion.requestedBy} />, <Time at={deletion.job.createdAt} />
          </span>
        </p>
      </TimelineItem>
    </ol>
  )
}

function AttemptEnd({ attempt }: { attempt: DeletionAttempt }) {
  const { outcome, errorCode, step } = attempt
  if (outcome === 'completed') return <p className="text-sm text-muted">Completed and verified.</p>
  if (outcome === 'lost') {
    return (
      <p className="text-sm text-muted">
        The worker stopped{step && <> while {stepText(step)}</>}; its lease expired.
      </p>
    )
  }
  if (outcome === 'running') {
    return step ? <p className="text-sm text-muted">Currently {stepText(step)}.</p> : null
  }
  return (
    <p className="text-sm text-muted">
      {errorCode && (
        <>
          {errorText(errorCode)} <code className="font-mono text-xs">{errorCode}</code>
        </>
      )}
      {step && <> while {stepText(step)}</>}
    </p>
  )
}

function tookText(from: string, to: string): string {
  const milliseconds = new Date(to).getTime() - new Date(from).getTime()
  return milliseconds < 10_000
    ? `${(milliseconds / 1_000).toFixed(1)} s`
    : durationText(milliseconds / 1_000)
}

const dots = { ok: 'bg-ok', warn: 'bg-warn', danger: 'bg-danger' }

function TimelineItem({
  tone,
  isHollow = false,
  isLast = false,
  children,
}: {
  tone?: keyof typeof dots
  isHollow?: boolean
  isLast?: boolean
  children: React.ReactNode
}) {
  const dot = isHollow ? 'border-2 border-edge' : tone ? dots[tone] : 'bg-edge'
  return (
    <li className="grid grid-cols-[0.625rem_minmax(0,1fr)] gap-x-3">
      <span aria-hidden="true" className="flex flex-col items-center">
        <span className={`mt-1.5 size-2.5 shrink-0 rounded-full ${dot}`} />
        {!isLast && <span className="mt-1 w-px flex-1 bg-line" />}
      </span>
      <div className="pb-5">{children}</div>
    </li>
  )
}

export function RemovedFigures({ deletion }: { deletion: Deletion }) {
  const { keys, sessions, chunks, blobs, bytes, browsers } = deletion.removed
  const figures = [
    ['Keys', count(keys)],
    ['Sessions', count(sessions)],
    ['Chunks', count(chunks)],
    ['Blobs', count(blobs)],
    ['Data', bytesText(bytes)],
    ['Browsers', count(browsers)],
  ] as const
  return (
    <dl className="flex flex-wrap gap-px overflow-hidden rounded-lg border border-line bg-line">
      {figures.map(([name, figure]) => (
        <div key={name} className="flex-1 basis-20 bg-raised px-3 py-2">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="text-base font-medium tabular">{figure}</dd>
        </div>
      ))}
    </dl>
  )
}
