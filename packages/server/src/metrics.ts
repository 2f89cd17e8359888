import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'

export interface Metrics {
  observeRequest(method: string, route: string, status: number, seconds: number): void
  observeBlobFault(code: string): void
  registry: Registry
  /** The metrics of all processes of the service, in the format of Prometheus. */
  text(): Promise<string>
}

/** Labels are route patterns, methods and statuses: callers cannot choose them. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const seconds = new Histogram({
    name: 'lethe_http_request_seconds',
    help: 'Time from the request to its response, by method, route pattern and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [registry],
  })
  const faults = new Counter({
    name: 'lethe_http_faults_total',
    help: 'Responses with a 5xx status, by route pattern.',
    labelNames: ['route'],
    registers: [registry],
  })
  const blobFaults = new Counter({
    name: 'lethe_blob_faults_total',
    help: 'Errors of the blob store in this process, by code.',
    labelNames: ['code'],
    registers: [registry],
  })
  // Cached: looking up a set of labels costs more than observing, and there are few.
  const series = new Map<string, ReturnType<typeof seconds.labels>>()
  return {
    registry,
    text: () => registry.metrics(),
    observeBlobFault: (code) => blobFaults.labels(code).inc(),
    observeRequest(method, route, status, elapsed) {
      const name = `${method} ${status} ${route}`
      let one = series.get(name)
      if (!one) {
        one = seconds.labels(method, route, String(status))
        series.set(name, one)
      }
      one.observe(elapsed)
      if (status >= 500) faults.labels(route).inc()
    },
  }
}
