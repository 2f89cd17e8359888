import type { eventWithTime, serializedNodeWithId } from '@rrweb/types'

/** The preferences of the visitor's system, from the meta event of a recording. */
export interface Media {
  scheme: 'light' | 'dark'
  motion: 'no-preference' | 'reduce'
  contrast: 'no-preference' | 'more' | 'less' | 'custom'
  /** What the page's `<meta name="color-scheme">` allows. */
  page: string
}

const always = '(min-width: 0)'
const never = '(max-width: 0)'

/**
 * Shows a recording with the preferences of the visitor's system, not of the viewer's: replaces
 * media features in its style sheets by conditions that are always true or always false.
 */
export function createMedia() {
  let media: Media | undefined
  return {
    /** Rewrites a line of a recording before it is parsed. */
    apply(line: string): string {
      if (!media || !/prefers-|color-scheme|light-dark/.test(line)) return line
      const { scheme, motion, contrast } = media
      return line
        .replace(/\(\s*prefers-color-scheme\s*:\s*(dark|light)\s*\)/g, (_, asked) =>
          asked === scheme ? always : never,
        )
        .replace(
          /\(\s*prefers-reduced-motion\s*(?::\s*(reduce|no-preference)\s*)?\)/g,
          (_, asked = 'reduce') => (asked === motion ? always : never),
        )
        .replace(
          /\(\s*prefers-contrast\s*(?::\s*(more|less|custom|no-preference)\s*)?\)/g,
          (_, asked) =>
            (asked ? asked === contrast : contrast !== 'no-preference') ? always : never,
        )
        .replace(
          /(color-scheme\s*:\s*)(?:only\s+)?(?:light\s+dark|dark\s+light)/g,
          (_, property) => `${property}${scheme}`,
        )
    },
    /** Call it with each event as recorded. */
    note(raw: unknown): void {
      const { type, data } = (raw ?? {}) as { type?: unknown; data?: Record<string, unknown> }
      if (type === 4 && data?.media) media = read(data.media)
    },
    /** Applies the visitor's colour scheme if the page's `<meta>` allows it. */
    dress(event: eventWithTime): void {
      if (event.type !== 2 || !media?.page.split(' ').includes(media.scheme)) return
      const html = childOf(event.data.node, 'html')
      if (html?.type !== 2) return
      html.attributes.style = `color-scheme:${media.scheme};${html.attributes.style ?? ''}`
    },
  }
}

function read(payload: unknown): Media {
  const { scheme, motion, contrast, page } = (payload ?? {}) as Record<string, unknown>
  return {
    scheme: scheme === 'dark' ? 'dark' : 'light',
    motion: motion === 'reduce' ? 'reduce' : 'no-preference',
    contrast:
      contrast === 'more' || contrast === 'less' || contrast === 'custom'
        ? contrast
        : 'no-preference',
    page: typeof page === 'string' ? page.slice(0, 40) : '',
  }
}

function childOf(node: serializedNodeWithId, tag: string): serializedNodeWithId | undefined {
  return 'childNodes' in node
    ? node.childNodes.find((child) => child.type === 2 && child.tagName === tag)
    : undefined
}
