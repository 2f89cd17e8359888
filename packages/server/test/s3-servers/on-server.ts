import { beforeAll, describe, test } from 'vitest'
import { useCredentials } from './bucket.ts'
import { missingPackages, runsHere, type S3Server, type S3ServerName, s3Server } from './start.ts'

/**
 * Suites over a real S3 server, whose credentials the product finds. Where the server
 * is not installed they are skipped aloud, and in CI a failure.
 */
export function onS3Server(
  name: S3ServerName,
  what: string,
  suites: (server: () => S3Server) => void,
): void {
  const decision = runsHere(
    `${what} on a real ${name}`,
    missingPackages(name),
    process.env.CI === 'true',
  )
  if (!decision.runs) {
    test.skip(decision.title, () => {})
    return
  }
  describe(`on ${name}`, () => {
    let server: S3Server
    beforeAll(async () => {
      server = await s3Server(name)
      useCredentials(server)
    })
    suites(() => server)
  })
}
