import { connectOne, type DbAddress } from '../src/sql.ts'

/** The servers the tests run on: one, or the nodes of a Citus cluster, the coordinator first. */
export type Servers = [DbAddress, ...DbAddress[]]

export async function serversOf(address: DbAddress): Promise<Servers> {
  const { client, end } = await connectOne(address)
  const { rows: there } = await client.query("select to_regclass('pg_dist_node') as name")
  const { rows } = there[0].name
    ? await client.query<{ host: string; port: number }>(
        'select nodename as host, nodeport as port from pg_dist_node where groupid > 0 order by nodeid',
      )
    : { rows: [] }
  await end()
  return [address, ...rows.map((node) => ({ ...address, ...node }))]
}

/** Makes a database, on each node of a cluster one of that name; a cluster's template has the tables. */
export async function createDatabase(servers: Servers, name: string, template?: string) {
  for (const server of servers) {
    const { client, end } = await connectOne({ ...server, database: 'postgres' })
    // Citus itself keeps connections to each database of its own.
    if (template && servers.length > 1) {
      await client.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
        [template],
      )
    }
    await client.query(
      // A copy of the files takes a third of the time of one through the log.
      `create database ${name} template ${template ?? "template0 encoding 'UTF8'"} strategy file_copy`,
    )
    // As `distribute` has set it for the template.
    if (template && server !== servers[0]) {
      await client.query(`alter database ${name} set lock_timeout = '2s'`)
    }
    await end()
  }
}

/** Makes a cluster of databases of that name. */
export async function joinNodes([coordinator, ...nodes]: Servers, database: string) {
  if (nodes.length === 0) return
  for (const server of [coordinator, ...nodes]) {
    const { client, end } = await connectOne({ ...server, database })
    await client.query('create extension citus')
    await end()
  }
  const { client, end } = await connectOne({ ...coordinator, database })
  const { host, port } = coordinator
  await client.query('select citus_set_coordinator_host($1, $2)', [host, port])
  for (const node of nodes)
    await client.query('select citus_add_node($1, $2)', [node.host, node.port])
  await end()
}

export async function dropDatabase(servers: Servers, name: string) {
  for (const server of servers) {
    const { client, end } = await connectOne({ ...server, database: 'postgres' })
    await client.query(`drop database ${name} with (force)`)
    await end()
  }
}
