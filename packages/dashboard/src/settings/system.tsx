import { getSystem } from '@lethe/contract/dashboard-system.ts'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Body } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { HealthChip } from '../design/chip.tsx'
import { bytesText, count } from '../design/number.ts'
import { Fact, Facts, Panel, useTitle } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { None } from '../design/table.tsx'
import { Time } from '../design/time.tsx'

type SystemState = Body<typeof getSystem>

/** How the installation does. */
export function System() {
  useTitle('System')
  const { data, error, refetch } = useQuery({
    ...reading(getSystem, {}),
    refetchInterval: liveMilliseconds * 2,
  })
  if (!data) {
    return (
      <Awaited
        error={error}
        title="System state could not be loaded"
        retry={refetch}
        rows={6}
        isCard
      />
    )
  }
  return (
    <>
      <Parts state={data} />
      <Work state={data} />
    </>
  )
}

const stores = { folder: 'Folder on this machine', s3: 'S3 bucket', unknown: 'Unknown' }

function Parts({ state }: { state: SystemState }) {
  const { database, blobs, worker } = state
  return (
    <Panel title="Installation">
      <div className="border-t border-line px-4 py-4">
        <Facts>
          <Fact name="Version">
            Lethe {state.version}, Node {state.nodeVersion}
          </Fact>
          <Fact name="Database">
            PostgreSQL {database.version}
            {database.isEmbedded ? ', embedded' : ''} · {bytesText(database.bytes)}
          </Fact>
          <Fact name="Storage">
            <span className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
              {stores[blobs.kind]} <HealthChip state={blobs.state} />
              {blobs.errorCode && <code className="font-mono text-sm">{blobs.errorCode}</code>}
              {blobs.checkedAt && (
                <span className="text-sm text-muted">
                  checked <Time at={blobs.checkedAt} as="ago" />
                </span>
              )}
            </span>
          </Fact>
          <Fact name="Worker">
            <span className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
              <HealthChip state={worker.state} />
              {worker.lastSeenAt && (
                <span className="text-sm text-muted">
                  seen <Time at={worker.lastSeenAt} as="ago" />
                </span>
              )}
            </span>
            {worker.state !== 'ok' && (
              <p className="mt-1 text-sm text-pretty text-muted">
                Deletions wait until a worker is running. Start one with{' '}
                <code className="font-mono">lethe worker</code>, or run{' '}
                <code className="font-mono">lethe serve</code> without{' '}
                <code className="font-mono">--no-worker</code>.
              </p>
            )}
          </Fact>
        </Facts>
      </div>
    </Panel>
  )
}

function Work({ state }: { state: SystemState }) {
  const projectId = useProjectId()
  const { deletions, webhooks } = state
  return (
    <Panel title="Queue (all projects)">
      <div className="border-t border-line px-4 py-4">
        <Facts>
          <Fact name="Deletions waiting">
            <span className="tabular">{count(deletions.pending)}</span>
          </Fact>
          <Fact name="Deletions running">
            <span className="tabular">{count(deletions.running)}</span>
          </Fact>
          <Fact name="Deletions failed">
            <span className={`tabular ${deletions.failed > 0 ? 'font-medium text-danger' : ''}`}>
              {count(deletions.failed)}
            </span>
          </Fact>
          <Fact name="Oldest waiting">
            {deletions.oldestPendingAt && deletions.oldestPendingJobId ? (
              <Link
                to="/projects/$projectId/deletions"
                params={{ projectId }}
                search={{ job: deletions.oldestPendingJobId }}
                className="link"
              >
                <Time at={deletions.oldestPendingAt} as="ago" />
              </Link>
            ) : (
              <None />
            )}
          </Fact>
          <Fact name="Webhooks waiting">
            <span className="tabular">{count(webhooks.pending)}</span>
            {webhooks.oldestPendingAt && (
              <span className="text-muted">
                , oldest <Time at={webhooks.oldestPendingAt} as="ago" />
              </span>
            )}
          </Fact>
        </Facts>
      </div>
    </Panel>
  )
}
