import type { ReactNode } from 'react'

const tones = {
  /** As it should be: nothing to look at. */
  quiet: 'px-0! text-muted',
  neutral: 'bg-sunken text-muted',
  accent: 'bg-accent-soft text-accent',
  ok: 'bg-ok-soft text-ok',
  warn: 'bg-warn-soft text-warn',
  danger: 'bg-danger-soft text-danger',
} as const

export type Tone = keyof typeof tones

/** A state in a word or two, never by colour alone. `isMoving`: something is going on right now. */
export function Chip({
  tone = 'neutral',
  isMoving = false,
  children,
}: {
  tone?: Tone
  isMoving?: boolean
  children: ReactNode
}) {
  return (
    <span
      className={`inline-flex items-center gap-1.5 rounded-full px-2 py-px text-xs font-medium whitespace-nowrap ${tones[tone]}`}
    >
      <span
        aria-hidden="true"
        className={`size-1.5 rounded-full ${tone === 'quiet' ? 'bg-ok' : 'bg-current'} ${isMoving ? 'animate-pulse' : ''}`}
      />
      {children}
    </span>
  )
}

export function HealthChip({ state }: { state: 'ok' | 'failed' | 'unknown' }) {
  if (state === 'ok') return <Chip tone="ok">Healthy</Chip>
  if (state === 'failed') return <Chip tone="danger">Down</Chip>
  return <Chip>Unknown</Chip>
}

/** A tag has no state, only a word. */
export function Tag({ children }: { children: ReactNode }) {
  return (
    <span className="inline-flex rounded border border-line px-1.5 text-xs whitespace-nowrap text-muted">
      {children}
    </span>
  )
}
