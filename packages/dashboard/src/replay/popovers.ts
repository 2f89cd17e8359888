const mark = 'data-lethe-popover'
const watched = new WeakSet<Node>()

/**
 * Shows the popovers of a replayed page that were shown in the recording. That takes a call, which
 * the recording has as an attribute. Call it whenever the page was rebuilt.
 */
export function showPopovers(page: Document): void {
  const isNew = !watched.has(page)
  watchAll(page)
  if (!isNew || !page.defaultView) return
  // No observer sees the shadow roots that the replay creates.
  const { prototype } = (page.defaultView as Window & typeof globalThis).Element
  const { attachShadow } = prototype
  prototype.attachShadow = function (options) {
    const root = attachShadow.call(this, options)
    watch(root)
    return root
  }
}

function watchAll(root: Document | ShadowRoot): void {
  watch(root)
  for (const { shadowRoot } of root.querySelectorAll('*')) if (shadowRoot) watchAll(shadowRoot)
}

function watch(root: Document | ShadowRoot): void {
  const show = () => {
    for (const element of root.querySelectorAll<HTMLElement>('[popover]')) {
      const isShown = element.matches(':popover-open')
      // A disconnected element cannot be shown.
      if (element.hasAttribute(mark) === isShown || !element.isConnected) continue
      if (isShown) element.hidePopover()
      else element.showPopover()
    }
  }
  show()
  if (watched.has(root)) return
  watched.add(root)
  const observer = new MutationObserver(show)
  observer.observe(root, { subtree: true, childList: true, attributeFilter: [mark] })
}
