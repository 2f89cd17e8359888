import { existsSync, readFileSync, statSync } from 'node:fs'
import { EmbeddedError } from './embedded-error.ts'

/** A user of the operating system, as `spawn` takes it. */
export interface Account {
  uid: number
  gid: number
}

export function isRoot(): boolean {
  return process.getuid?.() === 0
}

/**
 * Whom PostgreSQL runs as: undefined is ourselves. It refuses to run as root, so root runs it as
 * the owner of the cluster or, for a new one, as `postgres` or `nobody`.
 */
export function accountFor(clusterFolder: string): Account | undefined {
  if (!isRoot()) return undefined
  if (!existsSync(clusterFolder)) return systemAccount()
  const { uid, gid } = statSync(clusterFolder)
  if (uid === 0) {
    throw new EmbeddedError(
      `PostgreSQL does not run as root, and ${clusterFolder} belongs to root: give that folder and` +
        ' all in it to another user, for example by chown -R nobody.',
    )
  }
  return { uid, gid }
}

function systemAccount(): Account {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  const entries = lines.map((line) => line.split(':'))
  for (const name of ['postgres', 'nobody']) {
    const entry = entries.find((fields) => fields[0] === name)
    if (entry) return { uid: Number(entry[2]), gid: Number(entry[3]) }
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root, and this system has no user "postgres" or "nobody":' +
      ' start Lethe as an ordinary user.',
  )
}
