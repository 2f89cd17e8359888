import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
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
 * The account that PostgreSQL runs as; undefined for our own. PostgreSQL refuses to run as root, so
 * root runs it as the owner of the cluster or, for a new one, as an account that runs nothing else:
 * a process of the same account could read its files through /proc.
 */
export function accountFor(clusterFolder: string): Account | undefined {
  if (!isRoot()) return undefined
  if (!existsSync(clusterFolder)) return unusedAccount()
  const { uid, gid } = statSync(clusterFolder)
  if (uid === 0) {
    throw new EmbeddedError(
      `PostgreSQL does not run as root, but ${clusterFolder} belongs to root: give that folder and` +
        ' everything in it to another user, for example with chown -R nobody.',
    )
  }
  return { uid, gid }
}

/** IDs that neither distributions nor systemd assign. */
const unusedIds = Array.from({ length: 14 }, (_, i) => 65_520 + i)

function unusedAccount(): Account {
  const known = new Set(accountsOfSystem().map((fields) => Number(fields[2])))
  const running = new Set(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(uidOf),
  )
  const id = unusedIds.find((one) => !known.has(one) && !running.has(one) && mayBecome(one))
  return id === undefined ? namedAccount() : { uid: id, gid: id }
}

function uidOf(pid: string): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid
}

/** A container may have fewer IDs than a machine. */
function mayBecome(id: number): boolean {
  return ['uid_map', 'gid_map'].every((name) =>
    readFileSync(`/proc/self/${name}`, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number))
      .some(([first = 0, , count = 0]) => id >= first && id < first + count),
  )
}

function accountsOfSystem(): string[][] {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  return lines.map((line) => line.split(':'))
}

/** For programs of PostgreSQL that look up the name of their user. */
export function namedAccount(): Account {
  const entries = accountsOfSystem()
  for (const name of ['postgres', 'nobody']) {
    const entry = entries.find((fields) => fields[0] === name)
    if (entry) return { uid: Number(entry[2]), gid: Number(entry[3]) }
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root, but this system has no user "postgres" or "nobody":' +
      ' start Lethe as an ordinary user.',
  )
}
