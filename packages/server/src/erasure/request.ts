import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { ApiError } from '../api-error.ts'
import { retireBrowsersOf } from '../recordings/store.ts'
import type { Db } from '../sql.ts'
import { notifyWorkers } from './attempts.ts'
import { findDeletionJob, insertDeletionJob, lockPerson, type Requester } from './store.ts'

interface DeletionTerms {
  projectId: number
  keepRecordings: boolean
  requestedBy: Requester
}

/** The dashboard names persons by their internal ids, everybody else by their externalIds. */
export type DeletionRequest = DeletionTerms & ({ externalId: string } | { personId: string })

/**
 * Makes the deletion job of a person, or answers the one in progress. In one transaction the job is
 * made, the person is flagged (it takes no POST, PATCH or identify from then on) and its browsers
 * are retired (they take no session or chunk), so what has to be erased is a closed set.
 *
 * Refuses with person_not_found and deletion_in_progress.
 */
export async function requestDeletion(db: Db, request: DeletionRequest): Promise<DeletionJob> {
  const { projectId, keepRecordings, requestedBy } = request
  const job = await db.begin(async (tx) => {
    const person = await lockPerson(tx, projectId, request)
    if (!person) throw new ApiError('person_not_found', 'No person with this externalId.')
    if (person.deletionJobId) {
      const open = (await findDeletionJob(tx, projectId, person.deletionJobId)) as DeletionJob
      if (open.keepRecordings !== keepRecordings) throw otherInProgress()
      return open
    }
    const personId = person.id
    const job = await insertDeletionJob(tx, { projectId, personId, keepRecordings, requestedBy })
    await retireBrowsersOf(tx, projectId, personId)
    return job
  })
  notifyWorkers(db.sql)
  return job
}

function otherInProgress(): ApiError {
  return new ApiError(
    'deletion_in_progress',
    'A deletion of this person with the other keepRecordings is in progress.',
  )
}

export interface DeletionsRequest extends DeletionTerms {
  externalIds: readonly string[]
}

export type RequestedDeletion =
  | { externalId: string; job: DeletionJob }
  | { externalId: string; error: { code: string; message: string } }

/** Persons of one batch that are worked on at the same time, each on a connection of the pool. */
const requestsAtOnce = 4

/**
 * Requests the erasure of many persons, each as if it were alone: what is refused for one is
 * answered in its place and stops no other. Results come in the order of `externalIds`.
 */
export async function requestDeletions(
  db: Db,
  { externalIds, ...request }: DeletionsRequest,
): Promise<RequestedDeletion[]> {
  const results: RequestedDeletion[] = []
  const indexes = externalIds.keys()
  const lane = async () => {
    for (const index of indexes) {
      const externalId = externalIds[index] as string
      results[index] = await requestOne(db, { ...request, externalId })
    }
  }
  await Promise.all(Array.from({ length: requestsAtOnce }, lane))
  return results
}

async function requestOne(
  db: Db,
  request: DeletionTerms & { externalId: string },
): Promise<RequestedDeletion> {
  const { externalId } = request
  try {
    return { externalId, job: await requestDeletion(db, request) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { externalId, error: { code: error.code, message: error.message } }
  }
}
