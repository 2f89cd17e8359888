import { useSyncExternalStore } from 'react'
import { Icon } from '../design/icon.tsx'

function listen(onChange: () => void): () => void {
  window.addEventListener('online', onChange)
  window.addEventListener('offline', onChange)
  return () => {
    window.removeEventListener('online', onChange)
    window.removeEventListener('offline', onChange)
  }
}

/** Says on every page that there is no network: what is shown may be old, and nothing is saved. */
export function Offline() {
  const isOnline = useSyncExternalStore(listen, () => navigator.onLine)
  return (
    <div role="status" className="fixed inset-x-0 bottom-0 z-50">
      {!isOnline && (
        <p className="flex items-center justify-center gap-2 border-t border-line bg-warn-soft px-4 py-2 text-sm text-warn">
          <Icon name="warning" className="size-4" />
          You’re offline. What you see may be out of date, and changes can’t be saved.
        </p>
      )}
    </div>
  )
}
