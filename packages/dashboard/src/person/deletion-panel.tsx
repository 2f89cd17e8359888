import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import type { PersonDetail } from '@lethe/contract/dashboard-persons.ts'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { DeleteDialog } from '../deletions/delete-dialog.tsx'
import { LastError, Progress, Requester, removedText, Scope } from '../deletions/parts.tsx'
import { isOpen } from '../deletions/words.ts'
import { Button } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { Time } from '../design/time.tsx'

/** The deletion of a person that is still there: in progress, or failed. */
export function DeletionPanel({ person, deletion }: { person: PersonDetail; deletion: Deletion }) {
  return isOpen(deletion) ? (
    <InProgress deletion={deletion} />
  ) : (
    <FailedDeletion person={person} deletion={deletion} />
  )
}

function InProgress({ deletion }: { deletion: Deletion }) {
  const { attempts, attemptsMaximum, job, lastErrorCode, nextAttemptAt } = deletion
  return (
    <section
      aria-label="Deletion in progress"
      className="mb-5 rounded-lg border border-warn/40 bg-warn-soft px-4 py-3.5"
    >
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <h2 className="flex items-center gap-2 text-base text-warn">
          <Icon name="clock" />
          This person is being deleted
        </h2>
        <JobLink jobId={job.id} />
      </div>
      <p role="status" className="mt-2 text-pretty">
        <Progress deletion={deletion} />
      </p>
      <AttemptBar
        attempts={attempts}
        maximum={attemptsMaximum}
        isWaiting={nextAttemptAt !== null}
      />
      {lastErrorCode && (
        <p className="mt-2 text-sm">
          Last error: <LastError deletion={deletion} />
        </p>
      )}
      <RequestLine deletion={deletion} />
    </section>
  )
}

function AttemptBar({
  attempts,
  maximum,
  isWaiting,
}: {
  attempts: number
  maximum: number
  isWaiting: boolean
}) {
  return (
    <div aria-hidden="true" className="mt-2.5 flex max-w-56 gap-1">
      {Array.from({ length: maximum }, (_, index) => {
        const isCurrent = !isWaiting && index === attempts - 1
        const look = isCurrent
          ? 'bg-warn animate-pulse'
          : index < attempts
            ? 'bg-warn'
            : 'bg-warn/25'
        // biome-ignore lint/suspicious/noArrayIndexKey: the bars are their numbers
        return <span key={index} className={`h-1 flex-1 rounded-full ${look}`} />
      })}
    </div>
  )
}

function RequestLine({ deletion }: { deletion: Deletion }) {
  return (
    <p className="mt-2 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-muted">
      <span>
        Requested by <Requester by={deletion.requestedBy} />,{' '}
        <Time at={deletion.job.createdAt} as="ago" />
      </span>
      <Scope keepRecordings={deletion.job.keepRecordings} />
    </p>
  )
}

function JobLink({ jobId }: { jobId: string }) {
  const projectId = useProjectId()
  return (
    <Link
      to="/projects/$projectId/deletions"
      params={{ projectId }}
      search={{ job: jobId }}
      className="link text-sm"
    >
      All attempts
    </Link>
  )
}

function FailedDeletion({ person, deletion }: { person: PersonDetail; deletion: Deletion }) {
  const mayDelete = useMay('persons.delete')
  const [isAsking, setAsking] = useState(false)
  const { attempts, removed, failedAt, job } = deletion
  const isSomethingGone = removed.keys + removed.sessions + removed.blobs + removed.browsers > 0
  return (
    <section
      aria-label="Deletion failed"
      className="mb-5 rounded-lg border border-danger/40 bg-danger-soft px-4 py-3.5"
    >
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
        <h2 className="flex items-center gap-2 text-base text-danger">
          <Icon name="warning" />
          Deleting this person failed
        </h2>
        <JobLink jobId={job.id} />
      </div>
      <p className="mt-2 text-pretty">
        All {attempts} attempts failed
        {failedAt && (
          <>
            , most recently <Time at={failedAt} as="ago" />
          </>
        )}
        . <LastError deletion={deletion} />
      </p>
      <p className="mt-1.5 max-w-[72ch] text-pretty">
        The person and their properties still exist and can be edited again.{' '}
        {isSomethingGone
          ? `Already permanently deleted: ${removedText(deletion)}.`
          : 'Some recordings may already be deleted or unreadable.'}{' '}
        A new request deletes what is left.
      </p>
      <RequestLine deletion={deletion} />
      <Button
        look="danger"
        size="small"
        className="mt-3"
        disabledReason={mayDelete ? undefined : needsPermission['persons.delete']}
        onClick={() => setAsking(true)}
      >
        Request deletion again…
      </Button>
      <DeleteDialog
        persons={isAsking ? [person] : []}
        keepRecordings={job.keepRecordings}
        onClose={() => setAsking(false)}
      />
    </section>
  )
}
