import type { Sql } from '../sql.ts'

export interface Quotas {
  /** Throws a refusal where the project or the network has sent its bytes of the day. */
  admit(projectId: number, network: string): void
  /** What arrived, whatever comes of it. */
  countSent(network: string, bytes: number): void
  /** What was stored: refused chunks, and those that a store could not take, fill no project's day. */
  countStored(projectId: number, bytes: number): void
  countRefused(projectId: number): void
  /** Adds what was counted since the last time to what all processes counted. */
  flush(): Promise<void>
}

export interface QuotaLimits {
  /** Bytes of stored chunks a day, over all processes; 0 is no limit. */
  bytesPerProject: number
  /** Bytes of chunks from one network, in each process: addresses are written nowhere. */
  bytesPerAddress: number
}

export type Exceeded = 'bytes_per_project' | 'bytes_per_address'

const networksMaximum = 100_000
const dayMilliseconds = 86_400_000

/**
 * Counts the bytes of a day. A project's are added up in the database every few seconds, so that a
 * chunk costs no write more; until then a process knows of its own and of what it read last.
 */
export function openQuotas(
  sql: Sql,
  limits: QuotaLimits,
  refuse: (exceeded: Exceeded, projectId: number) => Error,
): Quotas {
  const byProject = new Map<number, { known: number; added: AddedUsage }>()
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
        const { bytes }: Usage = await addUsage(sql, added)
        // What came meanwhile is left for the next time; until here all of it counted.
        usage.known = bytes
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
  bytes: number
  refused: number
}

interface AddedUsage extends Usage {
  projectId: number
}

/** Days that the usage is kept for. */
const keptDays = 31

/** Adds to what a project's browsers sent today, and returns all of it. */
async function addUsage(sql: Sql, { projectId, bytes, refused }: AddedUsage): Promise<Usage> {
  const [usage] = await sql<Usage>`
    insert into ingest_usage as u (project_id, day, bytes, refused)
    values (${projectId}, (app_now() at time zone 'UTC')::date, ${bytes}, ${refused})
    on conflict (project_id, day) do update
    set bytes = u.bytes + excluded.bytes, refused = u.refused + excluded.refused
    returning bytes::float8 as bytes, refused::float8 as refused`
  return usage as Usage
}

export async function deleteOldUsage(sql: Sql): Promise<void> {
  await sql`delete from ingest_usage where day < (app_now() at time zone 'UTC')::date - ${keptDays}`
}
