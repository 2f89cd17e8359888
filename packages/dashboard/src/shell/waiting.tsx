import { useRouter } from '@tanstack/react-router'
import { basePath } from '../api/base-path.ts'
import { RequestFailed } from '../api/call.ts'
import { ErrorPanel, Skeletons } from '../design/states.tsx'

export function Waiting() {
  return (
    <div className="mx-auto w-full max-w-6xl p-4 sm:p-8">
      <Skeletons rows={8} />
    </div>
  )
}

export function Failed({ error, reset }: { error: unknown; reset: () => void }) {
  const router = useRouter()
  return (
    <div className="grid min-h-[60dvh] place-items-center">
      <ErrorPanel
        error={error}
        title="This page could not be loaded"
        retry={async () => {
          // What did not arrive once is not asked for again by every browser: a new load asks.
          if (!(error instanceof RequestFailed) && (await isServerThere())) window.location.reload()
          reset()
          void router.invalidate()
        }}
      />
    </div>
  )
}

/** A reload while it is away would end at the browser's error page. */
async function isServerThere(): Promise<boolean> {
  return fetch(`${basePath}/health/live`, { cache: 'no-store' }).then(
    ({ ok }) => ok,
    () => false,
  )
}
