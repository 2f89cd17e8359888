import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { ApiError } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { refusalOf } from '../http/errors.ts'
import { externalIdMaximum, lockPerson } from '../persons/store.ts'
import type { Db, Sql } from '../sql.ts'
import { findDeletionJob, insertDeletionJob, notifyWorkers, type Requester } from './jobs.ts'

interface DeletionTerms {
  projectId: number
  keepRecordings: boolean
  requestedBy: Requester
}

/** The dashboard names persons by internal ID, everything else by externalId. */
export type DeletionRequest = DeletionTerms & ({ externalId: string } | { personId: string })

/**
 * Creates the deletion job of a person, or returns the one in progress. One transaction creates the
 * job and flags the person; its cost does not depend on what the person has. From the commit on,
 * every POST, PATCH and identify of the person is refused, and every session and chunk of its
 * browsers. The worker then retires the browsers, which closes the set of what must be erased.
 *
 * Refuses with person_not_found and deletion_in_progress.
 */
export async function requestDeletion(db: Db, request: DeletionRequest): Promise<DeletionJob> {
  const job = await db.begin((tx) => requestIn(tx, request))
  notifyWorkers(db.sql)
  return job
}

async function requestIn(tx: Sql, request: DeletionRequest): Promise<DeletionJob> {
  const { projectId, keepRecordings, requestedBy } = request
  const person = await lockPerson(tx, projectId, request)
  if (!person) throw new ApiError('person_not_found', 'No person with this externalId.')
  if (person.deletionJobId) {
    const open = (await findDeletionJob(tx, projectId, person.deletionJobId)) as DeletionJob
    if (open.keepRecordings !== keepRecordings) throw otherInProgress()
    return open
  }
  return insertDeletionJob(tx, { projectId, personId: person.id, keepRecordings, requestedBy })
}

function otherInProgress(): ApiError {
  return new ApiError(
    'deletion_in_progress',
    'A deletion of this person with another keepRecordings is already in progress.',
  )
}

export interface DeletionsRequest extends DeletionTerms {
  externalIds: readonly string[]
}

export type RequestedDeletion =
  | { externalId: string; job: DeletionJob }
  | { externalId: string; error: { code: string; message: string } }

/** Persons of a batch whose jobs one transaction creates. */
const personsAPart = 100

/** After this many faults in a row the rest of a batch is not tried. */
const faultsMaximum = 3

/**
 * Requests the erasure of many persons, each on its own: a refusal or fault is the result of its
 * person and stops no other. Results are in the order of `externalIds`. Throws only if faults
 * prevented every job.
 */
export async function requestDeletions(
  db: Db,
  { externalIds, ...terms }: DeletionsRequest,
): Promise<RequestedDeletion[]> {
  const results = new Map<string, RequestedDeletion>()
  // Sorted, so that two batches lock persons in the same order and cannot deadlock.
  const ids = [...new Set(externalIds)].sort()
  let faults = 0
  let fault: unknown
  for (let start = 0; start < ids.length && faults < faultsMaximum; start += personsAPart) {
    const part = ids.slice(start, start + personsAPart)
    try {
      const done = await db.begin((tx) =>
        inTurn(part, (one) => requestIn(tx, { ...terms, ...one })),
      )
      for (const one of done) results.set(one.externalId, one)
      continue
    } catch (error) {
      fault = error
    }
    for (const externalId of part) {
      if (faults >= faultsMaximum) break
      try {
        const [one] = await inTurn([externalId], (by) => requestDeletion(db, { ...terms, ...by }))
        results.set(externalId, one as RequestedDeletion)
        faults = 0
      } catch (error) {
        fault = error
        faults += 1
        results.set(externalId, refusedWith(externalId, refusalOf(error)))
      }
    }
  }
  notifyWorkers(db.sql)
  if (![...results.values()].some((one) => 'job' in one) && faults > 0) throw fault
  return externalIds.map((one) => results.get(one) ?? refusedWith(one, refusalOf(fault)))
}

/** A refusal is the result of its person; a fault is thrown. */
async function inTurn(
  externalIds: readonly string[],
  request: (by: { externalId: string }) => Promise<DeletionJob>,
): Promise<RequestedDeletion[]> {
  const results: RequestedDeletion[] = []
  for (const externalId of externalIds) {
    try {
      checkExternalId(externalId)
      results.push({ externalId, job: await request({ externalId }) })
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      results.push(refusedWith(externalId, error))
    }
  }
  return results
}

function checkExternalId(externalId: string): void {
  const characters = [...externalId].length
  if (characters >= 1 && characters <= externalIdMaximum && isStorable(externalId)) return
  throw new ApiError(
    'invalid_request',
    `An externalId must have 1 to ${externalIdMaximum} characters and no U+0000.`,
  )
}

function refusedWith(externalId: string, { code, message }: ApiError): RequestedDeletion {
  return { externalId, error: { code, message } }
}
