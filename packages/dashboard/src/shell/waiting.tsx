import { useRouter } from '@tanstack/react-router'
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
        retry={() => {
          reset()
          void router.invalidate()
        }}
      />
    </div>
  )
}
