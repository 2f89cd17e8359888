import type { ReactNode } from 'react'

export function Step({
  number,
  title,
  children,
}: {
  number: number
  title: string
  children: ReactNode
}) {
  return (
    <section className="grid grid-cols-[1.625rem_minmax(0,1fr)] gap-x-3">
      <span
        aria-hidden="true"
        className="grid size-6.5 place-items-center rounded-full bg-accent-soft text-sm font-semibold text-accent tabular"
      >
        {number}
      </span>
      <div className="grid gap-2.5 pt-0.5">
        <h2 className="text-base">{title}</h2>
        {children}
      </div>
    </section>
  )
}
