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
  const logger = destination ? pino(options, destination) : pino(options)
  return {
    event(at, name, fields) {
      if (logger.isLevelEnabled(at)) logger[at]({ event: name, ...fields })
    },
    fault: (name, error, fields) =>
      logger.error({ event: name, ...fields, fault: describeFault(error) }),
  }
}

function describeFault(error: unknown) {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    ...(typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) && { code }),
    // The first lines of a stack are the message; frames begin with "at".
    frames: (error.stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line) && !line.includes('node:internal'))
      .slice(0, 8)
      .map((line) => line.trim()),
  }
}
