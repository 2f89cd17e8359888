const mark = 'data-lethe-popover'
const watched = new WeakSet<Node>()

/**
 * Shows the popovers of a replayed page that were shown in the recording: they need a call, and the
 * recording has it as an attribute. To be called whenever the page was built again.
 */
export function showPopovers(page: Document): void {
  const isNew = !watched.has(page)
  watchAll(page)
  if (!isNew || !page.defaultView) return
  // The replay makes shadow roots where no observer sees it.
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
      // What is not in the page cannot be shown.
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
