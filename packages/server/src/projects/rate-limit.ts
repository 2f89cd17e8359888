import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'

/** Counts a request in a bucket. Returns the RateLimit headers, or throws rate_limited. */
export type RateLimit = (bucket: string) => Record<string, string>

const bucketsMaximum = 100_000
const burstSeconds = 10

/**
 * A token bucket per name: `perSecond` requests on average, and `burst` at once. Each process counts
 * for itself.
 */
export function tokenBuckets(
  perSecond: number,
  burst: number,
  now: () => number = () => performance.now() / 1_000,
): RateLimit {
  const buckets = new Map<string, { tokens: number; at: number }>()
  return (name) => {
    const time = now()
    const bucket = buckets.get(name) ?? { tokens: burst, at: time }
    const tokens = Math.min(burst, bucket.tokens + (time - bucket.at) * perSecond)
    // With too many names, all buckets are reset, so that memory stays bounded.
    if (buckets.size >= bucketsMaximum) buckets.clear()
    const isRefused = tokens < 1
    buckets.set(name, { tokens: isRefused ? tokens : tokens - 1, at: time })
    const remaining = Math.max(0, Math.floor(isRefused ? 0 : tokens - 1))
    const waitSeconds = Math.ceil((isRefused ? 1 - tokens : burst - (tokens - 1)) / perSecond)
    const headers = {
      'ratelimit-limit': String(burst),
      'ratelimit-remaining': String(remaining),
      'ratelimit-reset': String(waitSeconds),
    }
    if (!isRefused) return headers
    throw new ApiError('rate_limited', 'Too many requests with this key; try again later.', {
      headers: { ...headers, 'retry-after': String(waitSeconds) },
    })
  }
}

/** A bucket per name, with bursts of ten seconds; `whose` is for the message. 0: no limit. */
export function limitPer(perSecond: number, whose: string): (name: string) => void {
  if (perSecond === 0) return () => {}
  const take = tokenBuckets(perSecond, Math.max(1, perSecond * burstSeconds))
  return (name) => {
    try {
      take(name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { headers } = error
      throw new ApiError('rate_limited', `Too many requests ${whose}.`, { headers, cause: error })
    }
  }
}

/** Counts requests refused by the rate limits of secret keys, for the dashboard. */
export interface Refusals {
  count(projectId: number): void
  /** Adds the counts since the last flush to today's total of all processes. */
  flush(): Promise<void>
}

export function countRefusals(sql: Sql): Refusals {
  let counted = new Map<number, number>()
  return {
    count(projectId) {
      counted.set(projectId, (counted.get(projectId) ?? 0) + 1)
    },
    async flush() {
      const added = counted
      counted = new Map()
      for (const [projectId, requests] of added) await addRefused(sql, projectId, requests)
    },
  }
}

async function addRefused(sql: Sql, projectId: number, requests: number): Promise<void> {
  await sql`
    insert into ingest_usage as u (project_id, day, bytes, refused, requests_refused)
    values (${projectId}, (app_now() at time zone 'UTC')::date, 0, 0, ${requests})
    on conflict (project_id, day) do update
    set requests_refused = u.requests_refused + excluded.requests_refused`
}
