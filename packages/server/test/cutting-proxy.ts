import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { DbAddress } from '../src/sql.ts'

export interface CuttingProxy {
  /** Where to connect instead of to the database. */
  address: DbAddress
  /** From now on the n-th COMMIT reaches the server and its response reaches nobody. 0: none is cut. */
  cutCommit(n: number): void
  /** Whether a COMMIT was cut since then. */
  readonly hasCut: boolean
  /** From now on no response comes through, and nobody is told: as where a machine is gone. */
  swallow(isSwallowing: boolean): void
  /** Ends all connections, as a network that breaks does. */
  cutAll(): void
  /** Ends all connections; new ones go to another server, or to none. */
  leadTo(database: DbAddress | undefined): void
  /** As where a machine vanishes: its connections stay and are silent, new ones go to another server. */
  strand(database: DbAddress): void
  close(): Promise<void>
}

/** The simple query `commit`, as the driver sends it. */
const commitMessage = Buffer.from('Q\0\0\0\x0bcommit\0', 'latin1')

/** Stands between a client and PostgreSQL. */
export async function startCuttingProxy(database: DbAddress, port = 0): Promise<CuttingProxy> {
  let target: DbAddress | undefined = database
  let countdown = 0
  let hasCut = false
  let isSwallowing = false
  let isClosed = false
  const sockets = new Set<Socket>()
  const stranded = new Set<Socket>()
  const server = createServer((client) => {
    if (!target) return client.destroy()
    const upstream = target.host.startsWith('/')
      ? connect(join(target.host, `.s.PGSQL.${target.port}`))
      : connect(target.port, target.host)
    let isCut = false
    const isStranded = () => stranded.has(client)
    const end = () => {
      if (isStranded() && !isClosed) return
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
      // The response is here, so the commit has taken place; it goes no further.
      if (isCut) end()
      else if (!isSwallowing && !isStranded()) client.write(bytes)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const cutAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const { port: listening } = server.address() as { port: number }
  return {
    address: { ...database, host: '127.0.0.1', port: listening },
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
    cutAll,
    leadTo(database) {
      target = database
      cutAll()
    },
    strand(database) {
      target = database
      for (const socket of sockets) stranded.add(socket)
    },
    close() {
      isClosed = true
      cutAll()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
