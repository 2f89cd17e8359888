import { useSummary } from '../api/projects.ts'
import { Icon } from '../design/icon.tsx'
import { counted } from '../design/number.ts'

/** What a limit refused today, and what to do: above what is missing because of it. */
export function LimitLine() {
  const { data } = useSummary()
  const recordings = data?.recordingsRefusedToday ?? 0
  const requests = data?.requestsRefusedToday ?? 0
  return (
    <div role="status">
      {recordings > 0 && (
        <Line
          what={`${counted(recordings, 'recording request')} refused today because a limit was reached.`}
          advice="Some sessions may be missing or incomplete."
        />
      )}
      {requests > 0 && (
        <Line
          what={`${counted(requests, 'API request')} refused today because a secret key reached its rate limit.`}
          advice="Send fewer requests, or raise RATE_LIMIT_PER_SECOND."
        />
      )}
    </div>
  )
}

function Line({ what, advice }: { what: string; advice: string }) {
  return (
    <div className="mb-4 flex gap-3 rounded-lg bg-warn-soft px-3.5 py-2.5 text-warn">
      <Icon name="warning" className="mt-1" />
      <p className="flex min-w-0 flex-wrap gap-x-3 gap-y-1">
        <span className="font-medium tabular">{what}</span>
        <span className="min-w-0 wrap-anywhere">{advice}</span>
      </p>
    </div>
  )
}
