import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { startCuttingProxy } from './cutting-proxy.ts'

const program = '/usr/sbin/pgbouncer'

export const hasPgbouncer = existsSync(program)

/** Debian's pgbouncer in transaction mode before a database, with few connections to share. */
export async function startPgbouncer(
  database: DbAddress,
): Promise<{ url: string; close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-pgbouncer-'))
  const port = await freePort()
  // As another user than this one, it may not be able to reach the folder of the socket.
  const bridge = await startCuttingProxy(database)
  const { host, user, password = '' } = bridge.address
  writeFileSync(join(folder, 'users'), `"${user}" "${password}"\n`)
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${host} port=${bridge.address.port} user=${user}${password && ` password=${password}`}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file = ${join(folder, 'users')}
pool_mode = transaction
default_pool_size = 6
max_client_conn = 200
`,
  )
  // It refuses to be root.
  const isRoot = process.getuid?.() === 0
  const account = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}
  if (isRoot) for (const name of ['', 'users', 'pgbouncer.ini']) own(join(folder, name))
  const child = spawn(program, [join(folder, 'pgbouncer.ini')], { stdio: 'ignore', ...account })
  const url = `postgres://${user}@127.0.0.1:${port}/${database.database}`
  async function close() {
    if (child.exitCode === null) {
      const exit = once(child, 'exit')
      // At once, also while clients are connected.
      child.kill('SIGTERM')
      await exit
    }
    await bridge.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await untilItAnswers({ ...database, host: '127.0.0.1', port }, child)
    return { url, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A connection that cannot be had within this time will not be had. */
const answerMilliseconds = 20_000

async function untilItAnswers(address: DbAddress, child: ChildProcess): Promise<void> {
  for (const end = Date.now() + answerMilliseconds; ; ) {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`)
    try {
      await (await connectOne({ ...address, pooler: 'unnamed' })).end()
      return
    } catch (error) {
      if (Date.now() > end) throw error
      await sleep(20)
    }
  }
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}

const own = (path: string) => chownSync(path, idOf('-u'), idOf('-g'))

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
