import { quiet } from '../quiet.ts'
import { listen, together } from '../recording/page-natives.ts'
import { spy } from '../recording/spies.ts'
import type { Tell } from './signals.ts'

/** Errors and rejections that nothing handled. */
export function watchErrors(tell: Tell): () => void {
  const ends = [
    listen(
      window,
      'error',
      quiet(({ message, filename, lineno, colno, error }: ErrorEvent) => {
        // One of an image or a script that did not load has none.
        if (typeof message !== 'string') return
        const source = filename && `${filename}:${lineno}:${colno}`
        tell('lethe.error', { message, ...(source && { source }), ...stackOf(error) })
      }),
    ),
    listen(
      window,
      'unhandledrejection',
      quiet(({ reason }: PromiseRejectionEvent) => {
        tell('lethe.error', { message: `Uncaught (in promise) ${say(reason)}`, ...stackOf(reason) })
      }),
    ),
  ]
  return together(ends)
}

const CONSOLE = ['error', 'warn'] as const

/** What the page prints as an error or a warning. */
export function watchConsole(tell: Tell): () => void {
  let isTelling = false
  const ends = CONSOLE.map((level) =>
    spy(console, level, (_, input) => {
      // Reading what was printed may print.
      if (isTelling) return
      isTelling = true
      try {
        const text = format(input)
        if (!text.startsWith('lethe: ')) tell('lethe.console', { level, text })
      } finally {
        isTelling = false
      }
    }),
  )
  return together(ends)
}

/** As the console prints it, without what is no text. */
function format([first, ...rest]: unknown[]): string {
  if (typeof first !== 'string') return [first, ...rest].map(say).join(' ')
  const text = first.replace(/%([sdifoOc%])/g, (whole, kind) => {
    if (kind === '%') return '%'
    if (!rest.length) return whole
    const value = say(rest.shift())
    return kind === 'c' ? '' : value
  })
  return [text, ...rest.map(say)].join(' ')
}

/** Text as it is; of an error its message; of anything else only what it is. */
function say(value: unknown): string {
  if (value instanceof Error || (globalThis.DOMException && value instanceof DOMException)) {
    return `${value.name}: ${value.message}`
  }
  if (typeof value === 'function' || typeof value === 'symbol') return `[${typeof value}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return Array.isArray(value) ? '[array]' : '[object]'
}

function stackOf(error: unknown): { stack?: string } {
  const stack = error instanceof Error ? error.stack : undefined
  return typeof stack === 'string' ? { stack } : {}
}
