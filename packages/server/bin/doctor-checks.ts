import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { type Config, secretSettings } from '../src/config.ts'
import { readNodes } from '../src/distribute.ts'
import { checkDatabase } from '../src/migrate.ts'
import type { Db, DbAddress } from '../src/sql.ts'
import { reachOnly } from './open.ts'

export interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  /** What was found, and what to do. */
  words: string
}

export type Note = (check: string, state: Finding['state'], words: string) => void

/** Container engines put secrets here and set their modes; other users have no access. */
const secretsOfContainers = '/run/secrets/'

/** Checks that other users cannot read the files of secrets. */
export async function examineSecretFiles(note: Note): Promise<void> {
  const open: string[] = []
  for (const name of secretSettings) {
    const file = process.env[`${name}_FILE`]
    if (!file || file.startsWith(secretsOfContainers)) continue
    const { mode } = await stat(file)
    const others = (mode & 0o077).toString(8).padStart(3, '0')
    if (others !== '000') open.push(`${name}_FILE (mode ${(mode & 0o777).toString(8)})`)
  }
  if (open.length === 0) note('secret files', 'ok', 'Other users cannot read them.')
  else {
    note(
      'secret files',
      'warning',
      `Other users can read ${open.join(', ')}: run chmod 600 on them.`,
    )
  }
}

const responseSeconds = 5

/** Checks that PUBLIC_URL leads to Lethe. It may not be reachable from this machine. */
export async function examinePublicUrl({ PUBLIC_URL }: Config, note: Note): Promise<void> {
  if (PUBLIC_URL === '') return
  const { isLethe, status } = await askWithoutKey(PUBLIC_URL)
  if (isLethe) note('public address', 'ok', `${PUBLIC_URL} leads to Lethe.`)
  else if (status) {
    const words = `${PUBLIC_URL} does not lead to Lethe (status ${status}): check the proxy and the path of PUBLIC_URL.`
    note('public address', 'warning', words)
  } else {
    const words = `${PUBLIC_URL} cannot be reached from this machine: check that users can reach it.`
    note('public address', 'warning', words)
  }
}

export async function examineNodes(db: Db, note: Note): Promise<void> {
  const nodes = await readNodes(db.sql)
  if (nodes === undefined) return
  const words = `Citus, ${nodes} nodes with rows of projects.`
  const [sync] = await db.sql<{ seconds: number }>`
    select coalesce(max(abs(extract(epoch from result::timestamptz - clock_timestamp()))), 0)::float8
      as seconds
    from run_command_on_workers('select clock_timestamp()')
    where success`
  if ((sync?.seconds ?? 0) > clockSecondsAllowed) {
    note(
      'nodes',
      'warning',
      `${words} Their clocks differ by ${Math.round(sync?.seconds ?? 0)} s: leases of erasures need them in step.`,
    )
  } else note('nodes', 'ok', words)
}

/** The allowed difference between the clocks of machines. */
export const clockSecondsAllowed = 2

/** Sends a request without a key, and recognizes Lethe by its error response. */
async function askWithoutKey(url: string): Promise<{ isLethe: boolean; status?: number }> {
  const response = await fetch(`${url}/v1/persons`, {
    redirect: 'manual',
    signal: AbortSignal.timeout(responseSeconds * 1_000),
  }).catch(() => undefined)
  if (!response) return { isLethe: false }
  const body = (await response.json().catch(() => undefined)) as { error?: { requestId?: unknown } }
  const isLethe = response.status === 401 && typeof body?.error?.requestId === 'string'
  return { isLethe, status: response.status }
}

/** Checks that the service can listen on HOST and PORT, or that a Lethe already does. */
export async function examineListening({ HOST, PORT }: Config, note: Note): Promise<void> {
  const host = HOST === '0.0.0.0' ? '127.0.0.1' : HOST.includes(':') ? `[${HOST}]` : HOST
  const isServed = PORT !== 0 && (await askWithoutKey(`http://${host}:${PORT}`)).isLethe
  if (!isServed) {
    const server = createServer().listen(PORT, HOST)
    await once(server, 'listening')
    server.close()
  }
  const words = isServed ? 'Lethe is listening there.' : 'HOST and PORT are free.'
  note('listening', 'ok', words)
}

export async function examineKeyDatabase(
  { KEY_DATABASE_URL }: Config,
  main: DbAddress,
  note: Note,
): Promise<void> {
  if (KEY_DATABASE_URL === '') return
  const keys = await reachOnly('KEY_DATABASE_URL', KEY_DATABASE_URL)
  const { version } = await checkDatabase(keys, 'KEY_DATABASE_URL')
  const isSame = (['host', 'port', 'database'] as const).every((part) => keys[part] === main[part])
  if (isSame) {
    const words =
      'It is the main database, so backups of that contain the data keys: use another database.'
    note('key database', 'warning', words)
  } else note('key database', 'ok', `PostgreSQL ${version}, takes writes.`)
}

const transactionMinutesAllowed = 10

/** Finds transactions that block vacuum, migrations or erasures. */
export async function examineTransactions(db: Db, note: Note): Promise<void> {
  const rows = await db.sql<{ pid: number; minutes: number; waiting: number }>`
    select pid, floor(extract(epoch from clock_timestamp() - xact_start) / 60)::int as minutes,
      (select count(*)::int from pg_stat_activity w
        where a.pid = any (pg_blocking_pids(w.pid))) as waiting
    from pg_stat_activity a
    where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    order by xact_start`
  const blocking = rows.find(({ waiting }) => waiting > 0)
  const [oldest] = rows
  if (oldest && oldest.minutes >= transactionMinutesAllowed) {
    const words = `One has been open for ${oldest.minutes} minutes (pid ${oldest.pid}) and blocks vacuum: end it, for example with pg_terminate_backend.`
    note('transactions', 'warning', words)
  } else if (blocking) {
    const words = `${blocking.waiting} connections wait for locks held by another (pid ${blocking.pid}): check what it is doing.`
    note('transactions', 'warning', words)
  } else note('transactions', 'ok', 'No long transactions, and no locks being waited for.')
}
