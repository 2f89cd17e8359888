const mark = 'data-lethe-popover'
const watched = new WeakSet<Document>()

/**
 * Shows the popovers of a replayed page that were shown in the recording: they need a call, and the
 * recording has it as an attribute. To be called whenever the page was built again.
 */
export function showPopovers(page: Document): void {
  const show = () => {
    for (const element of page.querySelectorAll<HTMLElement>('[popover]')) {
      const isShown = element.matches(':popover-open')
      if (element.hasAttribute(mark) === isShown) continue
      if (isShown) element.hidePopover()
      else element.showPopover()
    }
  }
  show()
  if (watched.has(page)) return
  watched.add(page)
  const observer = new MutationObserver(show)
  observer.observe(page, { subtree: true, childList: true, attributeFilter: [mark] })
}
