import { clearTimeout, setTimeout } from '../natives.ts'

/** A page that is left may be asked for something else in its last moment, and a snapshot takes longer. */
const SETTLE_MILLISECONDS = 500

/** What a page may have put there instead returns anything, or nothing. */
const has = (query: string): Partial<MediaQueryList> => {
  try {
    return matchMedia(`(prefers-${query})`) ?? {}
  } catch {
    return {}
  }
}

/** What the visitor's system asks of pages; the viewer's may ask for something else. */
export function mediaOf() {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="color-scheme"]')?.content
  return {
    scheme: has('color-scheme:dark').matches ? 'dark' : 'light',
    motion: has('reduced-motion').matches ? 'reduce' : undefined,
    contrast: ['more', 'less', 'custom'].find((each) => has(`contrast:${each}`).matches),
    page: meta && /^[a-z ]{1,40}$/.test(meta) ? meta : undefined,
  }
}

/** Calls back when it asks for something else; returns how to end that. */
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
