import { createAndLockPerson } from '../persons/store.ts'
import type { Suppressions } from '../projects/suppressions.ts'
import type { Db, Sql } from '../sql.ts'

export type IdentifyOutcome = 'linked' | 'ignored' | 'linked_elsewhere' | 'retired' | 'full'

/** The maximum number of browsers of a person. Concurrent identify calls may exceed it. */
export const browsersPerPersonDefault = 1_000

export interface LinkLimits {
  browsersMaximum?: number | undefined
  /** The suppressed persons; if absent, any erased person may come back. */
  suppressions?: Suppressions
}

/**
 * Links a browser permanently to the person with this externalId, and creates the person if needed.
 * `ignored`: the person is being deleted or is suppressed; nothing was written. `full`: the person has
 * the maximum number of browsers; this one is retired and its sessions are closed, so that the
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
  // Decided before the person is read, so that the response does not reveal who exists.
  if (!browser || browser.isRetired) return 'retired'
  if (browser.linkedTo !== null) {
    return browser.linkedTo === externalId ? 'linked' : 'linked_elsewhere'
  }
  return link(db, projectId, browserId, externalId, limits)
}

/** Rolls back the transaction, which may have created the person. */
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
      // Lock order: person, browser. While the person is locked no DELETE can flag it, so this link
      // will be among the browsers that the worker retires.
      const person = await createAndLockPerson(tx, projectId, externalId)
      if (person === undefined) return 'ignored'
      const personId = person.id
      // Checked after the person was created, so that an erasure that just completed is seen.
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
        // Recordings of a known person must not stay unlinked: no erasure would find them.
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

/** Records that only identify has created this person. */
async function noteIdentified(tx: Sql, projectId: number, personId: string): Promise<void> {
  await tx`
    insert into identified_persons (project_id, person_id) values (${projectId}, ${personId})`
}

/** The person of a browser that the caller has locked. */
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

/** Whether a person has `count` browsers or more. */
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

/** Retires a browser and closes its sessions, so that the retention deletes them; for the ledger too. */
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
