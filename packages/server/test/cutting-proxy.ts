import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { DbAddress } from '../src/sql.ts'

export interface CuttingProxy {
  /** Where to connect instead of to the database. */
  address: DbAddress
  /** From now on the n-th COMMIT reaches the server and its answer reaches nobody. 0: none is cut. */
  cutCommit(n: number): void
  /** Whether a COMMIT was cut since then. */
  readonly hasCut: boolean
  /** From now on no answer comes through, and nobody is told: as where a machine is gone. */
  swallow(isSwallowing: boolean): void
  /** Ends all connections, as a network that breaks does. */
  cutAll(): void
  close(): Promise<void>
}

/** The simple query `commit`, as the driver sends it. */
const commitMessage = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1')

/** Stands between a client and PostgreSQL. */
export async function startCuttingProxy(database: DbAddress): Promise<CuttingProxy> {
  let countdown = 0
  let hasCut = false
  let isSwallowing = false
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = database.host.startsWith('/')
      ? connect(join(database.host, `.s.PGSQL.${database.port}`))
      : connect(database.port, database.host)
    let isCut = false
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    client.on('data', (bytes) => {
      if (bytes.includes(commitMessage) && --countdown === 0) {
        isCut = true
        hasCut = true
      }
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => {
      // The answer is here, so the commit has taken place; it goes no further.
      if (isCut) end()
      else if (!isSwallowing) client.write(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    address: { ...database, host: '127.0.0.1', port },
    cutCommit(n) {
      countdown = n
      hasCut = false
    },
    get hasCut() {
      return hasCut
    },
    swallow(swallowing) {
      isSwallowing = swallowing
    },
    cutAll() {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
