import { getDeletion } from '@lethe/contract/dashboard-deletions.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Body, codeOf } from '../api/call.ts'
import { useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Button, LinkButton } from '../design/button.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Drawer } from '../design/dialog.tsx'
import { ExternalId } from '../design/name.tsx'
import { Fact, Facts } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { DeleteDialog } from './delete-dialog.tsx'
import { Attempts, LastError, Progress, RemovedFigures, Scope, StatusChip } from './parts.tsx'
import { ReceiptPanel } from './receipt-panel.tsx'
import { isOpen } from './words.ts'

/** One job beside the list: what it is, how it went, and its receipt. */
export function DeletionDrawer({
  jobId,
  onClose,
}: {
  jobId: string | undefined
  onClose: () => void
}) {
  const projectId = useProjectId()
  const { data, error, refetch } = useQuery({
    ...reading(getDeletion, { params: { projectId, jobId: jobId ?? '' } }),
    enabled: jobId !== undefined,
    // A job that has ended stays as it is.
    refetchInterval: ({ state }) =>
      !state.data || isOpen(state.data.deletion) ? liveMilliseconds : false,
  })
  return (
    <Drawer
      isOpen={jobId !== undefined}
      onClose={onClose}
      title={
        data ? (
          <ExternalId
            id={data.deletion.job.externalId}
            className="text-base! break-all whitespace-pre-wrap"
          />
        ) : (
          'Deletion'
        )
      }
      description={
        data && (
          <>
            <StatusChip status={data.deletion.job.status} />
            <Scope keepRecordings={data.deletion.job.keepRecordings} />
          </>
        )
      }
    >
      {data ? (
        <Details {...data} />
      ) : (
        <Awaited
          error={error}
          title={
            codeOf(error) === 'deletion_job_not_found'
              ? 'Deletion not found'
              : 'The deletion could not be loaded'
          }
          retry={refetch}
        />
      )}
    </Drawer>
  )
}

function Details({ deletion, attempts }: Body<typeof getDeletion>) {
  const { job, failedAt } = deletion
  return (
    <div className="grid gap-7">
      {isOpen(deletion) && (
        <p className="rounded-lg bg-warn-soft px-3.5 py-2.5 text-warn">
          <Progress deletion={deletion} />
        </p>
      )}
      <section aria-label="The job">
        <Facts>
          <Fact name="Job">
            <span className="flex items-center gap-1">
              <code className="font-mono text-sm break-all">{job.id}</code>
              <CopyButton text={job.id} label="Copy job ID" />
            </span>
          </Fact>
          <Fact name="Requested">
            <Time at={job.createdAt} />
          </Fact>
          {job.startedAt && (
            <Fact name="Started">
              <Time at={job.startedAt} />
            </Fact>
          )}
          {job.completedAt && (
            <Fact name="Completed">
              <Time at={job.completedAt} />
            </Fact>
          )}
          {job.status === 'completed' && (
            <Fact name="Database files">
              {deletion.purgedAt ? (
                <>
                  purged <Time at={deletion.purgedAt} />
                </>
              ) : (
                'may hold deleted values until the next purge'
              )}
            </Fact>
          )}
          {failedAt && (
            <Fact name="Failed">
              <Time at={failedAt} />
            </Fact>
          )}
          {deletion.lastErrorCode && job.status !== 'completed' && (
            <Fact name="Last error">
              <LastError deletion={deletion} />
            </Fact>
          )}
        </Facts>
      </section>
      <section>
        <h3 className="mb-2.5">
          {job.status === 'failed' ? 'Removed before it failed' : 'Removed'}
        </h3>
        <RemovedFigures deletion={deletion} />
      </section>
      {job.status === 'failed' && <AgainAfterFailure deletion={deletion} />}
      {deletion.hasReceipt && (
        <section>
          <h3 className="mb-2.5">Receipt</h3>
          <ReceiptPanel jobId={job.id} externalId={job.externalId} />
        </section>
      )}
      <section>
        <h3 className="mb-3">Attempts</h3>
        <Attempts attempts={attempts} deletion={deletion} />
      </section>
    </div>
  )
}

/** The way on from a job that failed: the person, and a new request. */
function AgainAfterFailure({ deletion }: { deletion: Body<typeof getDeletion>['deletion'] }) {
  const projectId = useProjectId()
  const mayDelete = useMay('persons.delete')
  const [isAsking, setAsking] = useState(false)
  const { personId, job } = deletion
  if (personId === null) {
    return <p className="text-muted">A later request deleted this person.</p>
  }
  return (
    <div className="flex flex-wrap gap-2">
      <Button
        look="danger"
        disabledReason={mayDelete ? undefined : 'You need permission to delete people.'}
        onClick={() => setAsking(true)}
      >
        Request deletion again…
      </Button>
      <LinkButton to="/projects/$projectId/persons/$personId" params={{ projectId, personId }}>
        Go to person
      </LinkButton>
      <DeleteDialog
        persons={
          isAsking ? [{ id: personId, externalId: job.externalId, name: null, email: null }] : []
        }
        keepRecordings={job.keepRecordings}
        onClose={() => setAsking(false)}
      />
    </div>
  )
}
