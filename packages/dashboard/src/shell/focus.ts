import type { AnyRouter } from '@tanstack/react-router'
import { basePath } from '../api/base-path.ts'

/*
 * Where the keyboard stands after a page went away, or a part of one: never nowhere. A browser puts
 * the focus on the document's beginning when what had it is removed, and a user of a keyboard or
 * a screen reader would have to walk through the whole navigation again.
 */

export function startFocusKeeping(router: AnyRouter): void {
  router.subscribe('onResolved', ({ fromLocation, toLocation, pathChanged }) => {
    if (!fromLocation || !pathChanged) return
    focusPage(fromLocation.pathname, toLocation.pathname)
  })
  keepFocus()
}

/** On the way back the focus goes to the link that led on, else to the beginning of the page. */
function focusPage(from: string, to: string): void {
  const content = contentOf()
  if (!content || openOver()) return
  const focused = document.activeElement
  // Tabs are within the page: they keep it.
  if (focused !== content && content.contains(focused)) return
  const isBack = from.startsWith(`${to}/`)
  const link = isBack
    ? Array.from(content.querySelectorAll('a')).find(({ pathname }) => pathname === basePath + from)
    : undefined
  const target = link ?? content
  target.focus({ preventScroll: true })
}

/** What had the focus may be removed at any time: a person is erased, a form goes to its next step. */
function keepFocus(): void {
  let focused: Element | null = null
  const check = () => {
    if (!focused || focused.isConnected || document.activeElement !== document.body) return
    focused = null
    const target = openOver() ?? contentOf()
    target?.focus({ preventScroll: true })
  }
  document.addEventListener('focusin', ({ target }) => {
    focused = target as Element
  })
  new MutationObserver(check).observe(document.body, { childList: true, subtree: true })
}

function contentOf(): HTMLElement | null {
  return document.querySelector('main')
}

/** What is open over the page, the innermost: what opens later stands later in the document. */
function openOver(): HTMLElement | undefined {
  const roles = '[role=dialog], [role=alertdialog], [role=menu]'
  return Array.from(document.querySelectorAll<HTMLElement>(roles)).at(-1)
}
