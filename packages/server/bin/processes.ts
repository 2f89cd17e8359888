import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { AggregatorRegistry, type MetricObject } from 'prom-client'
import type { Log } from '../src/log.ts'
import type { Metrics } from '../src/metrics.ts'
import { UsageError } from './command.ts'
import type { Opened } from './open.ts'
import { stopMessage } from './signals.ts'

/*
 * `lethe serve --processes N`: the first process supervises N others (node:cluster), which share the
 * port and serve. The supervisor runs the embedded database, the worker and the upkeep.
 */

export const processesMaximum = 64

/** Further connections of each process: for short reads, sign-ins and the ledger. */
const connectionsAside = 6

/** Further connections of the supervisor: it listens for jobs and claims the embedded database. */
const connectionsOfSupervisor = 3

const restartSeconds = 1
const reportSeconds = 1

/** Throws `UsageError`. */
export function readProcesses(text: string): number {
  const count = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= processesMaximum) return count
  throw new UsageError(`--processes must be a whole number from 1 to ${processesMaximum}.`)
}

/** Refuses more processes than the database has connections for. Throws `UsageError`. */
export async function checkConnections({ db, config, connection }: Opened, count: number) {
  if (connection.pooler) return
  const each = config.DATABASE_POOL_SIZE + config.ERASURE_JOBS_AT_ONCE + connectionsAside
  const needed = (count + 1) * each + connectionsOfSupervisor
  const [row] = await db.sql<{ allowed: number }>`
    select current_setting('max_connections')::integer
      - current_setting('superuser_reserved_connections')::integer as allowed`
  if (row === undefined || needed <= row.allowed) return
  throw new UsageError(
    `${count} processes need up to ${needed} database connections, but the database allows ${row.allowed}: start fewer, lower DATABASE_POOL_SIZE, or raise max_connections.`,
  )
}

export interface Processes {
  /** The address they all listen on. */
  address: string
  /** The metrics of all processes, summed up. */
  metrics: Metrics
  close(): Promise<void>
}

/** Starts the processes and waits until all listen. Restarts a process that ends. */
export async function startProcesses(
  count: number,
  metrics: Metrics,
  log: Log,
): Promise<Processes> {
  const workers = new Set<Worker>()
  let isClosing = false

  function start(): Promise<{ address: string; port: number }> {
    const worker = cluster.fork()
    workers.add(worker)
    const listening = new Promise<{ address: string; port: number }>((resolve, reject) => {
      worker.once('listening', resolve)
      worker.once('exit', () => reject(new UsageError('A process of the service did not start.')))
    })
    worker.on('message', (message: Asked) => {
      if (message.kind !== 'metrics.asked') return
      void text().then((metricsText) => {
        if (worker.isConnected()) worker.send({ ...message, kind: 'metrics', text: metricsText })
      })
    })
    worker.once('exit', (code) => {
      workers.delete(worker)
      if (isClosing) return
      log.event('error', 'process.ended', { code: String(code) })
      setTimeout(() => {
        if (!isClosing) start().catch(() => {})
      }, restartSeconds * 1_000).unref()
    })
    return listening
  }

  async function text(): Promise<string> {
    const reports = await Promise.all([
      metrics.registry.getMetricsAsJSON(),
      ...[...workers].map(report),
    ])
    return AggregatorRegistry.aggregate(reports).metrics()
  }

  async function close(): Promise<void> {
    isClosing = true
    const ends = [...workers].map((worker) => once(worker, 'exit'))
    for (const worker of workers) if (worker.isConnected()) worker.send(stopMessage)
    await Promise.all(ends)
  }

  try {
    const [place] = await Promise.all(Array.from({ length: count }, start))
    const { address, port } = place as { address: string; port: number }
    const host = address.includes(':') ? `[${address}]` : address
    return { address: `http://${host}:${port}`, metrics: { ...metrics, text }, close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Asked {
  kind: string
  id: number
}

let asked = 0

/** The metrics of one process; none if it does not respond in time. */
function report(worker: Worker): Promise<MetricObject[]> {
  return new Promise((resolve) => {
    const id = ++asked
    const end = (metrics: MetricObject[]) => {
      clearTimeout(timer)
      worker.off('message', hear)
      resolve(metrics)
    }
    const hear = (message: Asked & { metrics?: MetricObject[] }) => {
      if (message.kind === 'report' && message.id === id) end(message.metrics ?? [])
    }
    const timer = setTimeout(end, reportSeconds * 1_000, [])
    worker.on('message', hear)
    if (worker.isConnected()) worker.send({ kind: 'report.asked', id })
  })
}

/** Whether a supervisor has started this process. */
export const isSupervised = cluster.isWorker

/** For a supervised process: reports its own metrics, and shows those of all processes. */
export function metricsOfAll(metrics: Metrics): Metrics {
  const waiting = new Map<number, (text: string) => void>()
  process.on('message', async (message: Asked & { text?: string }) => {
    if (message.kind === 'metrics') {
      waiting.get(message.id)?.(message.text ?? '')
      waiting.delete(message.id)
    }
    if (message.kind !== 'report.asked') return
    const own = await metrics.registry.getMetricsAsJSON()
    if (process.connected) process.send?.({ kind: 'report', id: message.id, metrics: own })
  })
  const text = () =>
    new Promise<string>((resolve) => {
      const id = ++asked
      waiting.set(id, resolve)
      process.send?.({ kind: 'metrics.asked', id })
    })
  return { ...metrics, text }
}
