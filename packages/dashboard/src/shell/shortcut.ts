import { useEffect, useRef } from 'react'
import { areShortcutsOn } from './theme.ts'

/** Calls `act` when the key is pressed outside of text fields and dialogs. */
export function useShortcut(key: string, act: () => void): void {
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key !== key || !isFree(event)) return
      event.preventDefault()
      latest.current()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  }, [key])
}

/** Whether a key is nobody else's: no modifier, no field, nothing open over the page. */
export function isFree(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null
  const isField = target?.closest('input:not([type=range]), textarea, select, [contenteditable]')
  const isOver = document.querySelector('[role=dialog], [role=alertdialog], [role=menu]')
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey
  return !event.defaultPrevented && !hasModifier && !isField && !isOver && areShortcutsOn()
}
