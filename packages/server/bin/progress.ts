import { print } from './command.ts'

/** What takes less is not worth a word. */
const silentSeconds = 2
const secondsBetweenLines = 1
const secondsBetweenLooks = 0.2

export interface Progress {
  /** From now on this is done, until the next one. `done` of `total`, in any unit, where known. */
  step(words: string): (done: number, total: number) => void
  end(): void
}

/**
 * Shows how far a command is that has run for more than two seconds: in a line of a terminal
 * (standard error), or with `--json` in lines of JSON before that of the result, each second.
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
