import { getInstallState } from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useMe } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { PageHead } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { Backend } from './backend.tsx'
import { Npm, Snippet } from './browser.tsx'
import { FirstRecording } from './first-recording.tsx'

/** How the recorder gets into an application, and whether it has arrived. */
export function Install() {
  const projectId = useProjectId()
  const { way = 'snippet' } = useSearch({ from: '/signed-in/projects/$projectId/install' })
  const { data, error, refetch } = useQuery({
    ...reading(getInstallState, { params: { projectId } }),
    refetchInterval: liveMilliseconds,
  })
  const { publicUrl } = useMe()
  return (
    <div className="mx-auto w-full max-w-[64rem] px-4 py-6 sm:px-8">
      <PageHead title="Install">
        Add the recorder to your pages, and identify visitors from your app.
      </PageHead>
      {data ? (
        <>
          <FirstRecording state={data} />
          <div className="card">
            <div className="border-b border-line">
              <nav aria-label="Ways to install" className="-mb-px flex gap-1 overflow-x-auto px-1">
                <Way to={undefined} label="Script tag" isActive={way === 'snippet'} />
                <Way to="npm" label="npm" isActive={way === 'npm'} />
                <Way to="backend" label="Backend" isActive={way === 'backend'} />
              </nav>
            </div>
            <div className="grid gap-5 p-5">
              {way === 'snippet' && <Snippet host={publicUrl} state={data} />}
              {way === 'npm' && <Npm host={publicUrl} state={data} />}
              {way === 'backend' && <Backend host={publicUrl} state={data} />}
            </div>
          </div>
        </>
      ) : (
        <Awaited error={error} title="Keys could not be loaded" retry={refetch} rows={6} isCard />
      )}
    </div>
  )
}

function Way({
  to,
  label,
  isActive,
}: {
  to: 'npm' | 'backend' | undefined
  label: string
  isActive: boolean
}) {
  const projectId = useProjectId()
  return (
    <Link
      to="/projects/$projectId/install"
      params={{ projectId }}
      search={to ? { way: to } : {}}
      resetScroll={false}
      aria-current={isActive ? 'page' : undefined}
      className={`flex h-10 items-center border-b-2 px-2.5 font-medium whitespace-nowrap -outline-offset-2 ${isActive ? 'border-accent text-ink' : 'border-transparent text-muted hover:text-ink'}`}
    >
      {label}
    </Link>
  )
}
