import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../sql.ts'

export interface SearchIndexOptions {
  /** A project with fewer persons than this is scanned and needs no index. */
  smallProjectPersons?: number
  /** How many persons a segment holds before the next one is begun. */
  segmentPersons?: number
  /** How many persons get their segment in one transaction. */
  partPersons?: number
  /** The longest text, in characters, the index takes; longer ones are always scanned. */
  longestText?: number
  /** How many small projects one pass looks at to see whether they still are. */
  projectsLookedAt?: number
  /** After a part, the step rests this many times as long as the part took. */
  restShare?: number
  /** Aborted: the step ends after the part it is at. */
  signal?: AbortSignal
}

const defaults = {
  smallProjectPersons: 16_384,
  segmentPersons: 16_384,
  partPersons: 250,
  longestText: 10_000,
  projectsLookedAt: 20,
  restShare: 0,
}

/**
 * Gives the persons of the tail their segment, in every project that is not small, until there is
 * none left. Answers how many it was. Any number of processes may do this at any time: they share
 * the projects among them, and no request waits longer than one part takes.
 *
 * `pass` remembers between calls how far the look at the small projects has come.
 */
export async function indexSearchTail(
  db: Db,
  options: SearchIndexOptions = {},
  pass: { afterProject: number } = { afterProject: 0 },
): Promise<number> {
  const settings = { ...defaults, ...options }
  let indexed = 0
  for (const project of await projectsWithTail(db, settings, pass)) {
    for (let given = -1; given !== 0 && !settings.signal?.aborted; indexed += given) {
      const began = performance.now()
      given = await indexPart(db, project, settings)
      const restMs = (performance.now() - began) * settings.restShare
      if (restMs > 0) await sleep(restMs, undefined, { signal: settings.signal }).catch(() => {})
    }
    await estimateShares(db, project)
  }
  return indexed
}

type Settings = typeof defaults

async function projectsWithTail(
  db: Db,
  settings: Settings,
  pass: { afterProject: number },
): Promise<number[]> {
  const rows = await db.sql<{ id: number; grown: boolean }>`
    select id, (
      select count(*) from (
        select from person_search
        where project_id = looked_at.id and coalesce(segment, 0) = 0
        limit ${settings.smallProjectPersons}::bigint
      ) as scanned) = ${settings.smallProjectPersons}::bigint as grown
    from (
      select id from projects
      where id > ${pass.afterProject} and not exists (
        select from search_segments where project_id = projects.id)
      order by id limit ${settings.projectsLookedAt}
    ) as looked_at
    order by id`
  pass.afterProject = rows.length < settings.projectsLookedAt ? 0 : (rows.at(-1)?.id ?? 0)
  const segmented = await db.sql<{ id: number }>`
    select id from projects
    where exists (select from search_segments where project_id = projects.id)
      and exists (
        select from person_search
        where project_id = projects.id and coalesce(segment, 0) = 0 and segment is null)
    order by id`
  return [...rows.filter((row) => row.grown), ...segmented].map((row) => row.id)
}

async function indexPart(db: Db, project: number, settings: Settings): Promise<number> {
  const [row] = await db.sql<{ given: number }>`
    select search_index_part(
      ${project}, ${settings.segmentPersons}, ${settings.partPersons}, ${settings.longestText}
    ) as given`
  return row?.given ?? 0
}

/** Estimates anew how frequent each gram is, when the project has grown by a quarter since. */
async function estimateShares(db: Db, project: number): Promise<void> {
  await db.sql`select search_estimate_shares(${project}, ${sampledPersons})`
}

/** More would tell rare texts better from very rare ones, which gains a search little. */
const sampledPersons = 2_000
