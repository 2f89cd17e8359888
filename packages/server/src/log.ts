import { type DestinationStream, pino } from 'pino'

/**
 * The fields of a log line. None can hold personal data: URLs are left out, because they contain
 * externalIds and searches, and so are error messages, because those of the database repeat rows.
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
  /** Logs a fault: its class, its code and its place in our code; never its message. */
  fault(name: string, error: unknown, fields?: LogFields): void
}

export function createLog(level: LogLevel | 'silent', destination?: DestinationStream): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  const logger = pino(options, destination ?? standardOutput())
  const repeats = countRepeats()
  return {
    event(at, name, fields) {
      if (logger.isLevelEnabled(at)) logger[at]({ event: name, ...fields })
    },
    fault(name, error, fields) {
      const fault = describeFault(error)
      const isOfSomething = fields?.requestId !== undefined || fields?.jobId !== undefined
      const times = isOfSomething ? 1 : repeats(`${name} ${fault.type} ${fault.code}`)
      if (times === 0) return
      logger.error({ event: name, ...fields, ...(times > 1 && { count: times }), fault })
    },
  }
}

/** A repeated fault of background work is logged once per minute. */
const repeatedFaultMilliseconds = 60_000

/** Counts a fault. Returns the count since it was last logged, or 0 if that was just now. */
function countRepeats(): (fault: string) => number {
  const known = new Map<string, { loggedAt: number; times: number }>()
  return (fault) => {
    const one = known.get(fault) ?? { loggedAt: Number.NEGATIVE_INFINITY, times: 0 }
    known.set(fault, one)
    one.times++
    const now = performance.now()
    if (now - one.loggedAt < repeatedFaultMilliseconds) return 0
    const { times } = one
    Object.assign(one, { loggedAt: now, times: 0 })
    return times
  }
}

/** If the terminal is closed or the disk is full, only the log lines are lost. */
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
    // The first lines of a stack are the message, so only lines with "at" are logged.
    ...(!isOutage(error, code) && { frames: framesOf(error) }),
  }
}

/** For an outage, the place in our code says nothing. */
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
