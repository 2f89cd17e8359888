import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import { useProjectId } from '../api/projects.ts'
import { RemovedFigures, Requester, Scope } from '../deletions/parts.tsx'
import { ReceiptPanel } from '../deletions/receipt-panel.tsx'
import { LinkButton } from '../design/button.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Icon } from '../design/icon.tsx'
import { ExternalId } from '../design/name.tsx'
import { Fact, Facts, useTitle } from '../design/page.tsx'
import { Time } from '../design/time.tsx'

/** What stands where a person stood: that it was deleted, when, by which job, and the proof. */
export function DeletedPage({ deletion }: { deletion: Deletion }) {
  useTitle('Deleted person')
  const projectId = useProjectId()
  const { job } = deletion
  return (
    <article className="card mx-auto max-w-2xl p-6 sm:p-8">
      <span className="mb-4 grid size-11 place-items-center rounded-xl bg-ok-soft text-ok">
        <Icon name="check" className="size-5" />
      </span>
      <h1>
        This person was deleted
        {job.completedAt && (
          <>
            {' '}
            on <Time at={job.completedAt} />
          </>
        )}
      </h1>
      <p className="mt-1.5 text-pretty text-muted">
        {job.keepRecordings
          ? 'The record, its properties and its links to browsers were deleted. The recordings were kept and are anonymous.'
          : 'The record, its properties and all recordings of its browsers were permanently deleted.'}
      </p>
      <div className="mt-6">
        <Facts>
          <Fact name="External ID">
            <ExternalId id={job.externalId} className="break-all whitespace-pre-wrap" />
          </Fact>
          <Fact name="Job">
            <span className="flex items-center gap-1">
              <code className="font-mono text-sm break-all">{job.id}</code>
              <CopyButton text={job.id} label="Copy job ID" />
            </span>
          </Fact>
          <Fact name="Requested">
            <Time at={job.createdAt} /> by <Requester by={deletion.requestedBy} />
          </Fact>
          <Fact name="Scope">
            <Scope keepRecordings={job.keepRecordings} />
          </Fact>
          <Fact name="Attempts">{deletion.attempts}</Fact>
        </Facts>
      </div>
      <h2 className="mt-7 mb-2.5 text-base">Removed</h2>
      <RemovedFigures deletion={deletion} />
      {deletion.hasReceipt && (
        <>
          <h2 className="mt-7 mb-2.5 text-base">Receipt</h2>
          <ReceiptPanel jobId={job.id} externalId={job.externalId} />
        </>
      )}
      <div className="mt-7 flex flex-wrap gap-2 border-t border-line pt-5">
        <LinkButton
          to="/projects/$projectId/deletions"
          params={{ projectId }}
          search={{ job: job.id }}
        >
          Show job
        </LinkButton>
        <LinkButton to="/projects/$projectId/persons" params={{ projectId }} look="quiet">
          Go to People
        </LinkButton>
      </div>
    </article>
  )
}
