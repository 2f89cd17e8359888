import type { Db, Sql } from '../sql.ts'

export interface SearchIndexOptions {
  /** A project with fewer persons than this is scanned and needs no index. */
  smallProjectPersons?: number
  /** How many persons a segment holds at least before the next one is begun. */
  segmentPersons?: number
  /** How many persons get their segment in one transaction. */
  partPersons?: number
  /** The longest text, in characters, the index takes; longer ones are always scanned. */
  longestText?: number
  /** After this time no further part is started; the next call continues. */
  seconds?: number
}

type Settings = Required<SearchIndexOptions>

const defaults: Settings = {
  smallProjectPersons: 16_384,
  segmentPersons: 32_768,
  partPersons: 250,
  longestText: 10_000,
  seconds: 1,
}

/**
 * Gives persons of the tail their segment, in every project that is not small, and returns how many
 * it was: 0 when there was nothing to do. To be called again and again. Any number of processes may
 * do so at any time; no request waits for it longer than one part takes.
 */
export async function indexSearchTail(db: Db, options: SearchIndexOptions = {}): Promise<number> {
  const settings = { ...defaults, ...options }
  const end = performance.now() + settings.seconds * 1_000
  let indexed = 0
  let projects = await projectsWithTail(db.sql, settings.smallProjectPersons)
  // One part per project in turn, so that no project waits for another one's import.
  while (projects.length > 0 && performance.now() < end) {
    const unfinished: number[] = []
    for (const project of projects) {
      const given = await indexPart(db.sql, project, settings)
      await estimateShares(db.sql, project)
      if (given > 0) unfinished.push(project)
      indexed += given
      if (performance.now() >= end) break
    }
    projects = unfinished
  }
  return indexed
}

/**
 * The projects with segments and a tail, and those without segments that are no longer small, among
 * those that some random pages of person_search have rows of: the larger a project, the sooner it
 * is found, however many there are.
 */
async function projectsWithTail(sql: Sql, smallProjectPersons: number): Promise<number[]> {
  const indexed = await sql<{ id: number }>`
    select project_id as id
    from search_segments
    -- The first one of each project.
    where first_id = 0 and exists (
      select from person_search
      where project_id = search_segments.project_id and coalesce(segment, 0) = 0 and segment is null)`
  const [pages] = await sql<{ pages: string }>`select person_search_pages() as pages`
  const share = Math.min(100, (100 * sampledPages) / Math.max(1, Number(pages?.pages)))
  const candidates = await sql<{ id: number }>`
    select project_id as id
    from person_search tablesample system (${share})
    where coalesce(segment, 0) = 0 and not exists (
      select from search_segments where project_id = person_search.project_id)
    group by project_id
    order by count(*) desc limit ${candidateProjects}`
  const grown: number[] = []
  for (const { id } of candidates) {
    const [row] = await sql<{ isGrown: boolean }>`
      select count(*) = ${smallProjectPersons}::bigint as "isGrown"
      from (
        select from person_search
        where project_id = ${id} and coalesce(segment, 0) = 0
        limit ${smallProjectPersons}::bigint) as scanned`
    if (row?.isGrown) grown.push(id)
  }
  return [...grown, ...indexed.map(({ id }) => id)]
}

const sampledPages = 64
/** Of the largest ones; counting one takes about a microsecond for every ten of its persons. */
const candidateProjects = 4

async function indexPart(sql: Sql, project: number, settings: Settings): Promise<number> {
  const [row] = await sql<{ given: number }>`
    select search_index_part(
      ${project}, ${settings.segmentPersons}, ${settings.partPersons}, ${settings.longestText}
    ) as given`
  return row?.given ?? 0
}

/** Estimates again how frequent each gram is: in the project when it has grown by a quarter since, and in a segment that has filled up. */
async function estimateShares(sql: Sql, project: number): Promise<void> {
  await sql`select search_estimate_shares(${project}, ${sampledPersons}), search_sample_segment(${project})`
}

/** More would distinguish rare texts from very rare ones, which helps a search little. */
const sampledPersons = 2_000
