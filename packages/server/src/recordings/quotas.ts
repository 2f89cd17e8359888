import type { Sql } from '../sql.ts'

export interface Quotas {
  /** Throws a refusal if the project or the network has reached its limit of the day. */
  admit(projectId: number, network: string): void
  /** Counts what arrived, stored or not. */
  countSent(network: string, bytes: number): void
  /** Counts what was stored: chunks that were refused or failed do not use up a project's limit. */
  countStored(projectId: number, bytes: number): void
  countRefused(projectId: number): void
  /** Adds what was counted since the last flush to the totals of all processes. */
  flush(): Promise<void>
}

export interface QuotaLimits {
  /** Bytes of stored chunks per day, over all processes; 0 is no limit. */
  bytesPerProject: number
  /** Bytes of chunks per day from one network, in each process: addresses are never stored. */
  bytesPerAddress: number
}

export type Exceeded = 'bytes_per_project' | 'bytes_per_address'

const networksMaximum = 100_000
const dayMilliseconds = 86_400_000

/**
 * Counts the bytes of a day. Each process adds its counts to the database every few seconds, so that a
 * chunk needs no additional write; in between it knows its own counts and the last total it read.
 */
export function openQuotas(
  sql: Sql,
  limits: QuotaLimits,
  refuse: (exceeded: Exceeded, projectId: number) => Error,
): Quotas {
  const byProject = new Map<number, { known: number; added: Usage }>()
  const byNetwork = new Map<string, number>()
  let networkDay = 0

  function usageOf(projectId: number) {
    let usage = byProject.get(projectId)
    if (!usage) {
      usage = { known: 0, added: { projectId, bytes: 0, refused: 0 } }
      byProject.set(projectId, usage)
    }
    return usage
  }

  function bytesOfNetwork(network: string): number {
    const day = Math.floor(Date.now() / dayMilliseconds)
    if (day !== networkDay || byNetwork.size >= networksMaximum) byNetwork.clear()
    networkDay = day
    return byNetwork.get(network) ?? 0
  }

  return {
    admit(projectId, network) {
      const { known, added } = usageOf(projectId)
      if (isReached(known + added.bytes, limits.bytesPerProject)) {
        throw refuse('bytes_per_project', projectId)
      }
      if (isReached(bytesOfNetwork(network), limits.bytesPerAddress)) {
        throw refuse('bytes_per_address', projectId)
      }
    },
    countSent(network, bytes) {
      byNetwork.set(network, bytesOfNetwork(network) + bytes)
    },
    countStored(projectId, bytes) {
      usageOf(projectId).added.bytes += bytes
    },
    countRefused(projectId) {
      usageOf(projectId).added.refused += 1
    },
    async flush() {
      for (const [projectId, usage] of byProject) {
        const added = { ...usage.added }
        usage.known = await addUsage(sql, added)
        // What was counted meanwhile is left for the next flush.
        usage.added.bytes -= added.bytes
        usage.added.refused -= added.refused
        const isIdle = added.bytes === 0 && added.refused === 0
        const isUnsent = usage.added.bytes > 0 || usage.added.refused > 0
        if (isIdle && !isUnsent && !isReached(usage.known, limits.bytesPerProject)) {
          byProject.delete(projectId)
        }
      }
    },
  }
}

function isReached(bytes: number, maximum: number): boolean {
  return maximum > 0 && bytes >= maximum
}

interface Usage {
  projectId: number
  bytes: number
  refused: number
}

/** How long the usage is kept. */
const keptDays = 31

/** Adds to today's usage of a project; returns its bytes of today. */
async function addUsage(sql: Sql, { projectId, bytes, refused }: Usage): Promise<number> {
  const [usage] = await sql<{ bytes: number }>`
    insert into ingest_usage as u (project_id, day, bytes, refused)
    values (${projectId}, (app_now() at time zone 'UTC')::date, ${bytes}, ${refused})
    on conflict (project_id, day) do update
    set bytes = u.bytes + excluded.bytes, refused = u.refused + excluded.refused
    returning bytes::float8 as bytes`
  return usage?.bytes ?? 0
}

export async function deleteOldUsage(sql: Sql): Promise<void> {
  await sql`delete from ingest_usage where day < (app_now() at time zone 'UTC')::date - ${keptDays}`
}
