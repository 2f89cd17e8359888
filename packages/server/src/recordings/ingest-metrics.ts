import { Counter, type Registry } from 'prom-client'

export type IngestLimitName =
  | 'requests_per_address'
  | 'requests_per_project'
  | 'bytes_per_address'
  | 'bytes_per_project'
  | 'sessions_per_browser'
  | 'uploads_at_once'

export interface IngestMetrics {
  observeRefused(limit: IngestLimitName): void
}

const name = 'lethe_ingest_refused_total'

/** Several servers of one process share the metrics of their registry. */
export function createIngestMetrics(registry: Registry): IngestMetrics {
  const refused =
    (registry.getSingleMetric(name) as Counter | undefined) ??
    new Counter({
      name,
      help: 'Requests from browsers that were refused because of a limit, by limit.',
      labelNames: ['limit'],
      registers: [registry],
    })
  return { observeRefused: (limit) => refused.labels(limit).inc() }
}
