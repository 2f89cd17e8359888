import { parse } from 'pg-connection-string'
import { connectOne, type DbAddress } from './sql.ts'

/** The values of `sslmode` that use TLS only if the server supports it. */
const opportunistic = /^(?:prefer|allow)$/

/**
 * Reads the URL of a database, with `sslmode` as in libpq: `require` verifies nothing unless there is
 * a root certificate, and `verify-ca` does not verify the host name. `rootCertificate` (PGSSLROOTCERT)
 * is for a URL that names none. Throws if a file named in the URL cannot be read.
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
    // A Unix socket has no TLS.
    ssl: host.startsWith('/') ? false : ((read.ssl as DbAddress['ssl']) ?? false),
  }
}

/**
 * Connects once to find out whether the server supports TLS and whether a pooler such as pgbouncer is
 * in front of it; returns the address with both.
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
 * Recognizes a pooler by its process ids, which are not the server's. A pooler that does not keep
 * track of prepared statements passes the name of one on to the server.
 */
async function learn(address: DbAddress): Promise<DbAddress> {
  // Poolers reject startup parameters that they do not know.
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
    // The statement exists: another process probed at the same time, or could not clean up.
    if ((error as { code?: string }).code === '42P05') return cautious
    throw error
  } finally {
    await end()
  }
}

const probe = 'lethe_probe'
