import { useEffect, useSyncExternalStore } from 'react'
import { IconButton } from './button.tsx'
import { Icon } from './icon.tsx'
import { meaningOf } from './states.tsx'

interface Toast {
  id: number
  title: string
  description?: string
  isFailure: boolean
}

const listeners = new Set<() => void>()
let toasts: readonly Toast[] = []
let lastId = 0

function change(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

/** Says in a corner that something was done. */
export function say(title: string, description?: string): void {
  lastId++
  change([...toasts, { id: lastId, title, isFailure: false, ...(description && { description }) }])
}

/** For what comes after a change: says that it was done, and goes on. */
export function sayThen(then: () => void, title: string, description?: string): () => void {
  return () => {
    say(title, description)
    then()
  }
}

export function sayFailed(title: string, error: unknown): void {
  lastId++
  change([...toasts, { id: lastId, title, isFailure: true, description: meaningOf(error) }])
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The corner itself: there from the start, so that what comes into it is read out. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts)
  return (
    <section
      aria-label="Messages"
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-4 z-50 grid w-[min(24rem,calc(100vw-2rem))] gap-2"
    >
      {shown.map((toast) => (
        <ToastCard key={toast.id} toast={toast} />
      ))}
    </section>
  )
}

function ToastCard({ toast }: { toast: Toast }) {
  const close = () => change(toasts.filter(({ id }) => id !== toast.id))
  useEffect(() => {
    const timer = setTimeout(
      () => change(toasts.filter(({ id }) => id !== toast.id)),
      toast.isFailure ? 12_000 : 6_000,
    )
    return () => clearTimeout(timer)
  }, [toast])
  return (
    <div className="pointer-events-auto flex animate-[appear_0.15s] items-start gap-2.5 rounded-lg border border-line bg-raised py-2.5 pr-2 pl-3 shadow-high">
      <Icon
        name={toast.isFailure ? 'warning' : 'check'}
        className={`mt-1 size-4 ${toast.isFailure ? 'text-danger' : 'text-ok'}`}
      />
      <div className="min-w-0 flex-1 py-0.5">
        <p className="font-medium break-words">{toast.title}</p>
        {toast.description && <p className="text-sm break-words text-muted">{toast.description}</p>}
      </div>
      <IconButton label="Close" icon="close" onClick={close} />
    </div>
  )
}
