import { quiet } from '../quiet.ts'
import { listen, together } from '../recording/page-natives.ts'
import { spy } from '../recording/spies.ts'
import type { Tell } from './signals.ts'

/** Reports uncaught errors and rejections. */
export function watchErrors(tell: Tell): () => void {
  const ends = [
    listen(
      window,
      'error',
      quiet(({ message, filename, lineno, colno, error }: ErrorEvent) => {
        // An image or script that failed to load has no message.
        if (typeof message !== 'string') return
        const source = filename && `${filename}:${lineno}:${colno}`
        tell('lethe.error', { message, ...(source && { source }), ...stackOf(error) })
      }),
    ),
    listen(
      window,
      'unhandledrejection',
      quiet(({ reason }: PromiseRejectionEvent) => {
        tell('lethe.error', {
          message: `Uncaught (in promise) ${describe(reason)}`,
          ...stackOf(reason),
        })
      }),
    ),
  ]
  return together(ends)
}

const CONSOLE = ['error', 'warn'] as const

/** Reports what the page prints with `console.error` and `console.warn`. */
export function watchConsole(tell: Tell): () => void {
  let isReporting = false
  const ends = CONSOLE.map((level) =>
    spy(console, level, (_, input) => {
      // Reading the arguments may itself print to the console.
      if (isReporting) return
      isReporting = true
      try {
        const text = format(input)
        if (!text.startsWith('lethe: ')) tell('lethe.console', { level, text })
      } finally {
        isReporting = false
      }
    }),
  )
  return together(ends)
}

/** Formats the arguments as the console does, but describes objects only by their kind. */
function format([first, ...rest]: unknown[]): string {
  if (typeof first !== 'string') return [first, ...rest].map(describe).join(' ')
  const text = first.replace(/%([sdifoOc%])/g, (whole, kind) => {
    if (kind === '%') return '%'
    if (!rest.length) return whole
    const value = describe(rest.shift())
    return kind === 'c' ? '' : value
  })
  return [text, ...rest.map(describe)].join(' ')
}

/** Returns text unchanged, an error's name and message, and only the kind of anything else. */
function describe(value: unknown): string {
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
