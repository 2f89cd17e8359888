import { clearTimeout, setTimeout } from '../natives.ts'

/** Preferences may change just as the page is left, when there is no time left for a snapshot. */
const SETTLE_MILLISECONDS = 500

/** The page may have replaced matchMedia by a function that returns anything. */
const has = (query: string): Partial<MediaQueryList> => {
  try {
    return matchMedia(`(prefers-${query})`) ?? {}
  } catch {
    return {}
  }
}

/** The preferences of the visitor's system, which may differ from the viewer's. */
export function mediaOf() {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="color-scheme"]')?.content
  return {
    scheme: has('color-scheme:dark').matches ? 'dark' : 'light',
    motion: has('reduced-motion').matches ? 'reduce' : undefined,
    contrast: ['more', 'less', 'custom'].find((each) => has(`contrast:${each}`).matches),
    page: meta && /^[a-z ]{1,40}$/.test(meta) ? meta : undefined,
  }
}

/** Calls `changed` when they change. Returns a function that ends this. */
export function onMedia(changed: () => void) {
  const lists = ['color-scheme:dark', 'reduced-motion', 'contrast'].map(has)
  let timer = 0
  const soon = () => {
    timer ||= setTimeout(() => {
      timer = 0
      changed()
    }, SETTLE_MILLISECONDS)
  }
  for (const list of lists) list.onchange = soon
  return () => {
    clearTimeout(timer)
    for (const list of lists) list.onchange = null
  }
}
