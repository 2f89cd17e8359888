import { type DestinationStream, pino } from 'pino'

/**
 * What a log line may carry: a fixed list of fields, none of which can hold personal data. A URL
 * is not among them (externalIds stand in paths and searches in queries), nor is any message of an
 * error, as those of the database repeat whole rows.
 */
export interface LogFields {
  requestId?: string
  method?: string
  /** The route's pattern, as in /v1/persons/:externalId. */
  route?: string
  status?: number
  milliseconds?: number
  projectId?: number
  jobId?: string
  attempt?: number
  step?: string
  code?: string
  count?: number
  address?: string
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface Log {
  event(level: LogLevel, name: string, fields?: LogFields): void
  /** A fault: its class, its code and where in our code it arose; never its words. */
  fault(name: string, error: unknown, fields?: LogFields): void
}

export function createLog(level: LogLevel | 'silent', destination?: DestinationStream): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const logger = pino(options, destination ?? standardOutput())
  const timesToTell = countRepeats()
  return {
    event(at, name, fields) {
      if (logger.isLevelEnabled(at)) logger[at]({ event: name, ...fields })
    },
    fault(name, error, fields) {
      const fault = describeFault(error)
      const isOfSomething = fields?.requestId !== undefined || fields?.jobId !== undefined
      const times = isOfSomething ? 1 : timesToTell(`${name} ${fault.type} ${fault.code}`)
      if (times === 0) return
      logger.error({ event: name, ...fields, ...(times > 1 && { count: times }), fault })
    },
  }
}

/** How often one and the same fault of work in the background is told. */
const repeatedFaultMilliseconds = 60_000

/** Returns how often a fault came since it was last told; 0: it was told just now. */
function countRepeats(): (fault: string) => number {
  const known = new Map<string, { toldAt: number; times: number }>()
  return (fault) => {
    const one = known.get(fault) ?? { toldAt: Number.NEGATIVE_INFINITY, times: 0 }
    known.set(fault, one)
    one.times++
    const now = performance.now()
    if (now - one.toldAt < repeatedFaultMilliseconds) return 0
    const { times } = one
    Object.assign(one, { toldAt: now, times: 0 })
    return times
  }
}

/** Lines that a closed terminal or a full disk does not take are lost, and nothing else is. */
function standardOutput(): DestinationStream {
  return pino.destination(1).on('error', () => {})
}

interface FaultWords {
  type: string
  code?: string
  frames?: string[]
}

function describeFault(error: unknown): FaultWords {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    ...(typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) && { code }),
    // The first lines of a stack are the message; frames begin with "at".
    ...(!isOutage(error, code) && { frames: framesOf(error) }),
  }
}

/** Of what is away, the place in our code says nothing. */
function isOutage({ name, message }: Error, code: unknown): boolean {
  const isAway =
    /^(?:08...|25006|53[0-9]..|57P0[1-5]|ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|ENOTFOUND)$/
  return (
    /^(?:DatabaseUnreachable|BlobFault)$/.test(name) ||
    (typeof code === 'string' && isAway.test(code)) ||
    message.startsWith('Connection terminated')
  )
}

function framesOf({ stack = '' }: Error): string[] {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line) && !line.includes('node:internal'))
    .slice(0, 8)
    .map((line) => line.trim())
}
