import { Link } from '@tanstack/react-router'
import { useProjectId, useSummary } from '../api/projects.ts'
import { Icon } from '../design/icon.tsx'
import { count, counted } from '../design/number.ts'

/** What goes on, or went wrong, with deletions: above the persons it is about. */
export function DeletionBanner() {
  const projectId = useProjectId()
  const { data } = useSummary()
  const open = data?.deletionsInProgress ?? 0
  const failed = data?.deletionsFailed ?? 0
  const words = [
    open > 0 && `${counted(open, 'deletion')} in progress`,
    failed > 0 && (open > 0 ? `${count(failed)} failed` : `${counted(failed, 'deletion')} failed`),
  ].filter(Boolean)
  return (
    <div role="status">
      {words.length > 0 && (
        <div
          className={`mb-4 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-lg px-3.5 py-2.5 ${failed > 0 ? 'bg-danger-soft text-danger' : 'bg-warn-soft text-warn'}`}
        >
          <Icon name={failed > 0 ? 'warning' : 'clock'} />
          <span className="font-medium tabular">{words.join(', ')}</span>
          <Link
            to="/projects/$projectId/deletions"
            params={{ projectId }}
            search={{ status: failed > 0 ? 'failed' : 'open' }}
            className="rounded-sm font-medium underline underline-offset-[3px]"
          >
            {failed > 0 ? 'Show failed deletions' : 'Show deletions'}
          </Link>
        </div>
      )}
    </div>
  )
}
