import { print } from './command.ts'

/** Shorter commands show no progress. */
const silentSeconds = 2
const secondsBetweenLines = 1
const secondsBetweenLooks = 0.2

export interface Progress {
  /** Begins a step. Call the returned function with its progress, in any unit; total 0: unknown. */
  step(words: string): (done: number, total: number) => void
  end(): void
}

/**
 * Shows the progress of a command that runs for more than two seconds: on a terminal in a line of
 * standard error, with `--json` as a line of JSON every second.
 */
export function showProgress(isJson = false): Progress {
  const begin = performance.now()
  const isTerminal = process.stderr.isTTY === true && !isJson
  let now = { step: '', done: 0, total: 0 }
  let hasLine = false
  const seconds = () => Math.round((performance.now() - begin) / 1_000)

  function show(): void {
    if (now.step === '' || performance.now() - begin < silentSeconds * 1_000) return
    if (isJson) {
      const { step, done, total } = now
      print(
        JSON.stringify({
          progress: { step, ...(total > 0 && { done, total }) },
          seconds: seconds(),
        }),
      )
    } else {
      const share =
        now.total > 0 ? ` ${Math.min(100, Math.floor((100 * now.done) / now.total))} %` : ''
      process.stderr.write(`\r\x1b[K${now.step}…${share} (${seconds()} s)`)
      hasLine = true
    }
  }

  const timer =
    isTerminal || isJson
      ? setInterval(show, (isJson ? secondsBetweenLines : secondsBetweenLooks) * 1_000).unref()
      : undefined
  return {
    step(words) {
      now = { step: words, done: 0, total: 0 }
      return (done, total) => {
        now = { step: words, done, total }
      }
    },
    end() {
      clearInterval(timer)
      if (hasLine) process.stderr.write('\r\x1b[K')
      hasLine = false
    },
  }
}

/** Shows the progress of a command for as long as it runs. */
export async function withProgress<T>(
  isJson: boolean | undefined,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = showProgress(isJson)
  try {
    return await work(progress)
  } finally {
    progress.end()
  }
}
