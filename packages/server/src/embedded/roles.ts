import { hkdfSync, randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { DbAddress } from '../sql.ts'

/** The cluster's superuser. Lethe connects as it only to set up its own role. */
const superuser = 'lethe'
/** Lethe's own role. It owns its database with everything in it, and has no other rights. */
const serviceRole = 'lethe_service'
export const database = 'lethe'

export { superuser }

/** Anybody who can read this file can connect. */
function secretFile(folder: string): string {
  return join(folder, 'lethe.secret')
}

export function hasSecret(folder: string): boolean {
  return existsSync(secretFile(folder))
}

/** The roles' passwords are derived from the secret of the cluster. */
export function addressesOf(
  folder: string,
  host: string,
): { service: DbAddress; superuser: DbAddress } {
  const secret = readFileSync(secretFile(folder), 'utf8').trim()
  const addressOf = (user: string) => ({
    host,
    port: 5432,
    user,
    database,
    password: passwordOf(secret, user),
  })
  return { service: addressOf(serviceRole), superuser: addressOf(superuser) }
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Readable only by the user that runs Lethe: PostgreSQL does not need it. */
export function writeSecret(folder: string, secret: string): void {
  const path = secretFile(folder)
  const { O_CREAT, O_TRUNC, O_WRONLY, O_NOFOLLOW } = constants
  writeDurably(`${path}.new`, O_CREAT | O_TRUNC | O_WRONLY | O_NOFOLLOW, `${secret}\n`)
  renameSync(`${path}.new`, path)
}

/** The socket requires a password; while `isOpen`, the superuser needs none. */
export function writeAuthentication(folder: string, isOpen = false): void {
  const lines = [...(isOpen ? [`local all ${superuser} trust`] : []), 'local all all scram-sha-256']
  const { O_WRONLY, O_NOFOLLOW } = constants
  // Both contents have the same length, so that a server never reads half of one.
  const text = lines.join('\n').padEnd(100, '\n')
  writeDurably(join(folder, 'pg_hba.conf'), O_WRONLY | O_NOFOLLOW, text)
}

function writeDurably(path: string, flags: number, text: string): void {
  const handle = openSync(path, flags, 0o600)
  writeSync(handle, text)
  ftruncateSync(handle, Buffer.byteLength(text))
  fsyncSync(handle)
  closeSync(handle)
}

function passwordOf(secret: string, role: string): string {
  return Buffer.from(hkdfSync('sha256', secret, '', `role ${role}`, 32)).toString('base64url')
}

/** Creates the roles, or resets their rights and passwords. */
export function rolesSql(secret: string): string[] {
  const rights = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls'
  return [
    `do $$ begin
       create role ${serviceRole};
     exception when duplicate_object then null;
     end $$`,
    `alter role ${serviceRole} ${rights} password '${passwordOf(secret, serviceRole)}'`,
    `alter role ${superuser} password '${passwordOf(secret, superuser)}'`,
  ]
}

export const createDatabaseSql = `create database ${database} owner ${serviceRole}`
