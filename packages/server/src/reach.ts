import { parse } from 'pg-connection-string'
import { connectOne, type DbAddress } from './sql.ts'

/** `sslmode`s that want TLS where the server has it, and go on without where it has not. */
const opportunistic = /^(?:prefer|allow)$/

/**
 * Where the database of a URL is, with `sslmode` as libpq means it: `require` verifies nothing
 * unless there is a root certificate, `verify-ca` no name. `rootCertificate`: of PGSSLROOTCERT, for
 * a URL that names none. Throws what the file system says of the files that are named.
 */
export function addressOf(url: string, rootCertificate?: string): DbAddress {
  const given = new URL(url)
  const mode = given.searchParams.get('sslmode')
  const isSystem = given.searchParams.get('sslrootcert') === 'system'
  if (isSystem) {
    given.searchParams.delete('sslrootcert')
    given.searchParams.set('sslmode', 'verify-full')
  } else if (mode && rootCertificate && !given.searchParams.has('sslrootcert')) {
    given.searchParams.set('sslrootcert', rootCertificate)
  }
  if (mode === 'allow') given.searchParams.set('sslmode', 'prefer')
  const read = parse(given.href, { useLibpqCompat: true })
  const host = read.host || 'localhost'
  return {
    host,
    port: Number(read.port || 5432),
    user: read.user ?? '',
    database: read.database || (read.user ?? ''),
    ...(read.password && { password: read.password }),
    // There is none on a socket of this machine.
    ssl: host.startsWith('/') ? false : ((read.ssl as DbAddress['ssl']) ?? false),
  }
}

/**
 * Connects once, and returns the address with what was learned about it: whether the server has
 * TLS, and whether a pooler such as pgbouncer stands before it.
 */
export async function reach(url: string, rootCertificate?: string): Promise<DbAddress> {
  const address = addressOf(url, rootCertificate)
  try {
    return await learn(address)
  } catch (error) {
    const mode = new URL(url).searchParams.get('sslmode') ?? ''
    const hasNoTls = (error as Error).message === 'The server does not support SSL connections'
    if (!opportunistic.test(mode) || !hasNoTls) throw error
    return learn({ ...address, ssl: false })
  }
}

/**
 * A pooler gives its clients process ids of its own. A statement that is prepared through one that
 * does not keep track of them would be on any of its connections, or on none.
 */
async function learn(address: DbAddress): Promise<DbAddress> {
  // Poolers refuse parameters of the start that they do not know.
  const cautious: DbAddress = { ...address, pooler: 'unnamed' }
  const { sql, client, end } = await connectOne(cautious)
  try {
    const [server] = await sql<{ pid: number }>`select pg_backend_pid() as "pid"`
    const { processID } = client as unknown as { processID: number }
    if (server?.pid === processID) return address
    await client.query('begin')
    await client.query({ name: probe, text: 'select 1' })
    const found = await sql`select from pg_prepared_statements where name = ${probe}`
    if (found.length > 0) await client.query(`deallocate ${probe}`)
    await client.query('commit')
    return { ...address, pooler: found.length > 0 ? 'unnamed' : 'named' }
  } catch (error) {
    // It is there already: another process asked the same and could not clean up.
    if ((error as { code?: string }).code === '42P05') return cautious
    throw error
  } finally {
    await end()
  }
}

const probe = 'lethe_probe'
