import { DatabaseReadOnly, DatabaseRefused } from './migrate.ts'
import { DatabaseUnreachable } from './sql.ts'

export interface Explained {
  /** One line for an operator: what happened, and what to do. */
  words: string
  /** Whether it may pass by itself, for example while the server starts. */
  passes: boolean
}

interface Place {
  /** The setting that leads to the database. */
  setting: string
  /** As the operator wrote it. */
  host: string
  port: number
}

type Fault = Error & { code?: string; path?: string; syscall?: string }

const passing = (words: string): Explained => ({ words, passes: true })
const lasting = (words: string): Explained => ({ words, passes: false })

/** Explains a fault of a database or of the way to it; undefined for other errors. */
export function explainDatabaseFault(error: unknown, place: Place): Explained | undefined {
  if (error instanceof DatabaseUnreachable) return explainDatabaseFault(error.cause, place)
  if (error instanceof DatabaseReadOnly) return passing(error.message)
  if (error instanceof DatabaseRefused) return lasting(error.message)
  if (!(error instanceof Error)) return undefined
  const fault = error as Fault
  return (
    unreachable(fault, place) ??
    tlsFault(fault, place) ??
    refusal(fault, place) ??
    driverFault(fault, place)
  )
}

function unreachable({ code, syscall }: Fault, { setting, host, port }: Place) {
  switch (code) {
    case 'ECONNREFUSED':
      return passing(
        `Nothing listens at ${host}:${port}, the address of the database in ${setting}: start PostgreSQL, or correct the address.`,
      )
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return passing(
        `The host name ${host} in ${setting} cannot be resolved: correct it, or check the DNS.`,
      )
    case 'ENOENT':
      if (syscall !== 'connect') return undefined
      return passing(
        `There is no PostgreSQL socket in ${host}, the path of the database in ${setting}: start PostgreSQL, or correct the path.`,
      )
    case 'EACCES':
      if (syscall !== 'connect') return undefined
      return lasting(
        `This user has no access to the PostgreSQL socket in ${host} (${setting}): start Lethe as a user who has.`,
      )
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return passing(
        `${host}:${port} in ${setting} does not respond: check the address, the network and firewalls.`,
      )
    case 'ECONNRESET':
    case 'EPIPE':
      return passing(
        `${host}:${port} in ${setting} closes connections at once: check the address, and the log of the database.`,
      )
  }
  return undefined
}

const untrusted =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|CERT_UNTRUSTED)$/

function tlsFault({ code = '', path, message }: Fault, { setting, host }: Place) {
  if (untrusted.test(code)) {
    return lasting(
      `The certificate of the database is from an unknown authority: name its root certificate, ${setting}=…?sslmode=verify-full&sslrootcert=/path/to/root.crt.`,
    )
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return lasting(
      `The certificate of the database is not for ${host}: use the name of the certificate in ${setting}, or sslmode=verify-ca to check only the authority.`,
    )
  }
  if (code === 'CERT_HAS_EXPIRED') {
    return lasting(`The certificate of the database at ${host} (${setting}) has expired: renew it.`)
  }
  if (path !== undefined && /^(?:ENOENT|EACCES|EISDIR)$/.test(code)) {
    return lasting(
      `The file ${path}, named by ${setting} or PGSSLROOTCERT, cannot be read (${code}).`,
    )
  }
  if (message === 'The server does not support SSL connections') {
    return lasting(
      `sslmode in ${setting} requires TLS, but the database at ${host} does not support it: enable TLS there, or set sslmode=prefer.`,
    )
  }
  if (message.startsWith('SECURITY WARNING: Using sslmode=verify-ca')) {
    return lasting(
      `sslmode=verify-ca in ${setting} needs a root certificate: add &sslrootcert=/path/to/root.crt.`,
    )
  }
  return /^(?:ERR_(?:SSL|TLS|OSSL)|EPROTO)/.test(code)
    ? lasting(`The TLS connection to the database at ${host} (${setting}) failed (${code}).`)
    : undefined
}

/** Errors of the server, by SQLSTATE. Their messages may hold data, so they are not repeated. */
function refusal(fault: Fault, { setting, host }: Place): Explained | undefined {
  const { code = '', message } = fault
  switch (code) {
    case '28P01':
      return lasting(`The database rejects the password in ${setting}: correct it.`)
    case '28000':
      if (/no encryption|SSL off/i.test(message)) {
        return lasting(
          `The database at ${host} accepts only encrypted connections: add ?sslmode=require to ${setting} (or verify-full, with its certificate).`,
        )
      }
      return lasting(
        `The database rejects the user in ${setting}: it does not exist, cannot log in, or pg_hba.conf does not allow it from this host.`,
      )
    case '3D000':
      return lasting(
        `The database named in ${setting} does not exist: create it, with encoding UTF8.`,
      )
    case '42501':
      return lasting(
        `The user in ${setting} lacks rights on the schema or its tables. If another user created them, use that user, or make this one their owner.`,
      )
    case '25006':
      return passing(`The database in ${setting} is read-only: set ${setting} to the primary.`)
    case '57P01':
    case '57P02':
    case '57P03':
      return passing(`The database in ${setting} is starting or stopping.`)
    case '53300':
      return passing(
        `The database in ${setting} has no connections left: raise max_connections, or lower DATABASE_POOL_SIZE.`,
      )
    case '53100':
      return lasting(`The disk of the database in ${setting} is full: make room there.`)
    case '53200':
      return lasting(`The database in ${setting} has too little memory.`)
    case '55P03':
    case '57014':
    case '40P01':
      return passing(
        `The database in ${setting} took too long: another transaction holds a lock, or a timeout of the role is too short for migrations.`,
      )
    case '42P05':
    case '26000':
      return lasting(
        `A pooler in front of the database loses prepared statements: set ${setting} to the database itself in every process.`,
      )
  }
  return refusalByClass(fault, setting)
}

function refusalByClass({ code = '', message }: Fault, setting: string): Explained | undefined {
  const isServers = /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')
  if (code === '08P01' && /unsupported startup parameter/.test(message)) {
    return lasting(
      `The pooler in ${setting} rejects a startup parameter: add it to ignore_startup_parameters.`,
    )
  }
  if (/^(?:08|53|57P|58)/.test(code)) {
    return passing(`The database in ${setting} is not available (${code}).`)
  }
  return isServers
    ? lasting(
        `The database in ${setting} rejected a statement (SQLSTATE ${code}): its log says why.`,
      )
    : undefined
}

function driverFault({ message }: Fault, { setting, host, port }: Place): Explained | undefined {
  if (/^SASL: .*password must be a/.test(message)) {
    return lasting(
      `The database requires a password, but ${setting} has none: add it, as in postgres://user:password@host/database.`,
    )
  }
  if (/^(?:timeout expired|Connection terminated|Query read timeout)/.test(message)) {
    return passing(
      `${host}:${port} in ${setting} does not respond: check the address, the network, firewalls and poolers.`,
    )
  }
  return undefined
}
