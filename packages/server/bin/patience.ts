import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { explainBlobFault } from '../src/blobs/explained.ts'
import type { Config } from '../src/config.ts'
import { type Explained, explainDatabaseFault } from '../src/database-faults.ts'
import type { Stop } from './signals.ts'

/** A step of the start failed; the message is one line for an operator. */
export class StartFailed extends Error {
  override readonly name = 'StartFailed'
}

/** How long a start waits for what is not available yet. */
export interface Patience {
  waitSeconds: number
  /** Whether this is a service or worker, which needs a working blob store. */
  isService: boolean
  stop: Pick<Stop, 'unless'>
}

const retryMilliseconds = 500

/**
 * Runs a step of the start. Retries a fault that may pass until `waitSeconds` are over, and prints this
 * once. Throws `StartFailed` for a fault that can be explained.
 */
export async function patiently<T>(
  { waitSeconds, stop }: Patience,
  explain: (error: unknown) => Explained | undefined,
  step: () => Promise<T>,
): Promise<T> {
  const end = performance.now() + waitSeconds * 1_000
  for (let round = 1; ; round++) {
    try {
      return await stop.unless(step())
    } catch (cause) {
      const explained = explain(cause)
      if (!explained) throw cause
      const { words, passes } = explained
      if (!passes || performance.now() > end) throw new StartFailed(words, { cause })
      if (round === 1) {
        process.stderr.write(`lethe: ${words} Retrying for up to ${waitSeconds} seconds.\n`)
      }
      await stop.unless(sleep(retryMilliseconds))
    }
  }
}

/** Explains faults of the database that a setting names. */
export function ofDatabase(
  setting: string,
  { host, port }: { host: string; port: number },
): (error: unknown) => Explained | undefined {
  return (error) => explainDatabaseFault(error, { setting, host, port })
}

/** The folder of blobs, unless they are in a bucket. */
export function blobsFolder(config: Config): string {
  return join(resolve(config.DATA_DIR), 'blobs')
}

/** Explains faults of the blob store. */
export function ofStore(config: Config): (error: unknown) => Explained | undefined {
  const { BLOBS_URL: url, S3_ENDPOINT: endpoint } = config
  return (error) => explainBlobFault(error, { url, endpoint, folder: blobsFolder(config) })
}
