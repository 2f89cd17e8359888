import { createAndLockPerson } from '../persons/store.ts'
import type { Suppressions } from '../projects/suppressions.ts'
import type { Db, Sql } from '../sql.ts'

export type IdentifyOutcome = 'linked' | 'ignored' | 'linked_elsewhere' | 'retired' | 'full'

/** Browsers a person may have. Of those that identify at the same moment all may be let in. */
export const browsersPerPersonDefault = 1_000

export interface LinkLimits {
  browsersMaximum?: number | undefined
  /** The suppressed persons; if absent, any erased person may come back. */
  suppressions?: Suppressions
}

/**
 * Ties a browser to the person with this externalId, permanently, and creates the person where there
 * is none. `ignored`: the person is being deleted, or was erased and is to stay so, and nothing was
 * written. `full`: the person has
 * as many browsers as it may have; this one is retired, and its sessions are closed, so that the
 * retention deletes them.
 */
export async function identify(
  db: Db,
  projectId: number,
  browserId: string,
  externalId: string,
  limits: LinkLimits = {},
): Promise<IdentifyOutcome> {
  const [browser] = await db.short<{ isRetired: boolean; linkedTo: string | null }>`
    select b.retired or p.deletion_job_id is not null as "isRetired", -- fault: identify-not-retired
      p.external_id as "linkedTo"
    from browsers b
    left join person_browsers l on l.project_id = b.project_id and l.browser_id = b.id
    left join persons p on p.project_id = l.project_id and p.id = l.person_id
    where b.project_id = ${projectId} and b.id = ${browserId}`
  // Decided before the person is looked at: the response tells nothing about who exists.
  if (!browser || browser.isRetired) return 'retired'
  if (browser.linkedTo !== null) {
    return browser.linkedTo === externalId ? 'linked' : 'linked_elsewhere'
  }
  return link(db, projectId, browserId, externalId, limits)
}

/** Rolls a transaction back in which a person may have been created for nothing. */
class LinkRefused extends Error {
  readonly outcome: IdentifyOutcome

  constructor(outcome: IdentifyOutcome) {
    super(outcome)
    this.outcome = outcome
  }
}

async function link(
  db: Db,
  projectId: number,
  browserId: string,
  externalId: string,
  { browsersMaximum = browsersPerPersonDefault, suppressions }: LinkLimits,
): Promise<IdentifyOutcome> {
  try {
    return await db.begin(async (tx) => {
      // The order of locks is person, browser. A link that sees no flag here comes before a DELETE
      // can set it, and is among the browsers that the worker retires.
      const person = await createAndLockPerson(tx, projectId, externalId)
      if (person === undefined) return 'ignored'
      const personId = person.id
      // Looked at after the person was created: an erasure that ended in between is seen here.
      if (person.isNew && (await suppressions?.has(tx, projectId, externalId))) {
        throw new LinkRefused('ignored')
      }
      if (person.isNew) await noteIdentified(tx, projectId, personId)
      const [browser] = await tx<{ retired: boolean }>`
        select retired -- fault: link-not-retired
        from browsers
        where project_id = ${projectId} and id = ${browserId}
        for update -- fault: link-locks-browser
        `
      if (!browser || browser.retired) throw new LinkRefused('retired')
      const linkedTo = await linkedPerson(tx, projectId, browserId)
      if (linkedTo === personId) return 'linked'
      if (linkedTo !== undefined) throw new LinkRefused('linked_elsewhere')
      if (await hasBrowsers(tx, projectId, personId, browsersMaximum)) {
        // Nothing of a named person may lie here unlinked, where no erasure would find it.
        await discardBrowser(tx, projectId, browserId)
        return 'full'
      }
      await tx`
        insert into person_browsers (project_id, browser_id, person_id)
        values (${projectId}, ${browserId}, ${personId})
        -- fault: link-once
        `
      return 'linked'
    })
  } catch (error) {
    if (error instanceof LinkRefused) return error.outcome
    throw error
  }
}

/** Notes that identify has created this person, of whom nothing else is known. */
async function noteIdentified(tx: Sql, projectId: number, personId: string): Promise<void> {
  await tx`
    insert into identified_persons (project_id, person_id) values (${projectId}, ${personId})`
}

/** Of a browser that the caller has locked: nobody links it meanwhile. */
async function linkedPerson(
  tx: Sql,
  projectId: number,
  browserId: string,
): Promise<string | undefined> {
  const [link] = await tx<{ personId: string }>`
    select person_id as "personId"
    from person_browsers
    where project_id = ${projectId} and browser_id = ${browserId}
      -- fault: link-looks
      `
  return link?.personId
}

/** Whether a person has so many browsers, or more. */
export async function hasBrowsers(
  sql: Sql,
  projectId: number,
  personId: string,
  count: number,
): Promise<boolean> {
  const [row] = await sql<{ has: boolean }>`
    select count(*) >= ${count}::integer as has
    from (
      select from person_browsers
      where project_id = ${projectId} and person_id = ${personId}
      limit ${count}::integer
    ) as links`
  return row?.has ?? false
}

/**
 * Takes a browser and its sessions out of use, so that the retention deletes them, and has it named
 * in the ledger.
 */
export async function discardBrowser(tx: Sql, projectId: number, browserId: string): Promise<void> {
  await tx`
    with discarded as (
      update browsers set retired = true, to_check = true
      where project_id = ${projectId} and id = ${browserId}
      returning project_id, id
    )
    insert into withdrawals (project_id, browser_id)
    select project_id, id from discarded
    on conflict do nothing`
  await tx`
    update sessions set closed = true
    where project_id = ${projectId} and browser_id = ${browserId}`
}
