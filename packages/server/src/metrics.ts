import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'

export interface Metrics {
  observeRequest(method: string, route: string, status: number, seconds: number): void
  registry: Registry
}

/** The service's metrics. Labels are route patterns, methods and statuses: nothing a caller can choose. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const seconds = new Histogram({
    name: 'lethe_http_request_seconds',
    help: 'Time from the request to its answer, by method, route pattern and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [registry],
  })
  const faults = new Counter({
    name: 'lethe_http_faults_total',
    help: 'Answers of 5xx, by route pattern.',
    labelNames: ['route'],
    registers: [registry],
  })
  // Looking a label set up costs more than observing, and there are few of them.
  const series = new Map<string, ReturnType<typeof seconds.labels>>()
  return {
    registry,
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
