import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { DialogProps } from './dialog-parts.tsx'

/*
 * Dialogs come to the page when the first one opens: what they are made of is a good part of the
 * first load's budget, and most visits need none.
 */

const parts = () => import('./dialog-parts.tsx')
const OpenDialog = lazy(async () => ({ default: (await parts()).OpenDialog }))
const OpenDrawer = lazy(async () => ({ default: (await parts()).OpenDrawer }))
const OpenSide = lazy(async () => ({ default: (await parts()).OpenSide }))

export function Dialog(props: DialogProps) {
  return (
    <OnceOpen isOpen={props.isOpen}>
      <OpenDialog {...props} />
    </OnceOpen>
  )
}

/** Details beside a list that stays in sight. */
export function Drawer(props: DialogProps) {
  return (
    <OnceOpen isOpen={props.isOpen}>
      <OpenDrawer {...props} />
    </OnceOpen>
  )
}

export function SideDialog(props: { isOpen: boolean; onClose: () => void; children: ReactNode }) {
  return (
    <OnceOpen isOpen={props.isOpen}>
      <OpenSide {...props} />
    </OnceOpen>
  )
}

function OnceOpen({ isOpen, children }: { isOpen: boolean; children: ReactNode }) {
  const [wasOpen, setWasOpen] = useState(false)
  if (isOpen && !wasOpen) setWasOpen(true)
  return wasOpen || isOpen ? <Suspense fallback={null}>{children}</Suspense> : null
}

export function DialogActions({ children }: { children: ReactNode }) {
  return <div className="mt-6 flex flex-wrap justify-end gap-2">{children}</div>
}
