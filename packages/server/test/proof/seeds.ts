import type { Step } from '../../src/erasure/steps.ts'
import type { Fault, Rewriting } from './faults.ts'

/** A fault, and who has to notice it. */
export interface Seed extends Fault {
  name: string
  /** The scenario that notices, by the beginning of its name. */
  scenario: string
  /** Interruptions it takes; 1 where nothing is said. */
  bound?: number
  /** Also in a normal run: those that stand for the others. */
  isShort?: true
}

const take = (find: RegExp, of: RegExp, replace = ''): { statements: Rewriting[] } => ({
  statements: [{ of, find, replace }],
})

const isHeld = /and lease_token = any\(¤\d+¤::uuid\[\]\)\s+and lease_until > app_now\(\)/

const fence = /^\s*select from deletion_jobs\s+where/
const completion = /set status = 'completed'/
const start = /insert into sessions[\s\S]*returning id/
const confirmation = /confirmed as/
const collection = /with part as[\s\S]*state <> 'stored' and intent_until/
const unusedBrowsers = /update browsers b set retired = true[\s\S]*not exists/

/** Of requests: DELETE, POST, PATCH and identify. */
const ofRequests: Seed[] = [
  {
    name: 'DELETE does not lock the person',
    scenario: 'DELETE ∥ DELETE, same flag',
    isShort: true,
    ...take(/\s+for update/, /"deletionJobId"\s+from persons/),
  },
  {
    name: 'DELETE retires no browsers',
    scenario: 'chunk ∥ DELETE ∥ worker: ',
    isShort: true,
    ...take(/set retired = true/, /from person_browsers l/, 'set retired = b.retired'),
  },
  {
    name: 'DELETE does not flag the person',
    scenario: 'POST ∥ DELETE',
    ...take(/set deletion_job_id = job\.id/, /flagged as/, 'set deletion_job_id = null'),
  },
  {
    name: 'the update of a merge does not look at the flag',
    scenario: 'POST ∥ DELETE',
    function: { name: 'person_write', find: /and p\.deletion_job_id is null/, replace: '' },
  },
  {
    name: 'POST does not answer for a person being deleted',
    scenario: 'POST ∥ DELETE',
    function: {
      name: 'person_write',
      find: /person\.deletion_job_id is not null/,
      replace: 'false',
    },
  },
  {
    name: 'identify does not lock the person',
    scenario: 'identify ∥ DELETE: linked',
    isShort: true,
    ...take(/\s+for share/, /isBeingDeleted/),
  },
  {
    name: 'identify does not look at the flag under the lock',
    scenario: 'identify ∥ DELETE: linked',
    ...take(/deletion_job_id is not null as/, /isBeingDeleted/, 'false as'),
  },
  {
    name: 'identify does not lock the browser',
    scenario: 'retention ∥ start and identify',
    bound: 2,
    ...take(/\s+for update/, /^\s*select retired\s+from browsers/),
  },
  {
    name: 'identify does not look whether the browser is retired under the lock',
    scenario: 'retention ∥ start and identify',
    ...take(/select retired/, /^\s*select retired\s+from browsers/, 'select false as retired'),
  },
  {
    name: 'identify does not see at first that the browser is retired',
    scenario: 'a stale identify ∥ worker',
    ...take(/select b\.retired,/, /linkedTo/, 'select false as retired,'),
  },
  {
    name: 'a browser may be linked anew',
    scenario: 'two identifies of one browser',
    ...take(
      /on conflict \(project_id, browser_id\) do nothing/,
      /insert into person_browsers/,
      'on conflict (project_id, browser_id) do update set person_id = excluded.person_id',
    ),
  },
]

/** Of what browsers send. */
const ofUploads: Seed[] = [
  {
    name: 'a start does not lock the browser',
    scenario: 'in the midst of a start',
    ...take(/\s+for share/, start),
  },
  {
    name: 'a start does not look whether the browser is retired under the lock',
    scenario: 'start ∥ DELETE ∥ worker',
    ...take(/and not retired(?=\s+for share)/, start),
  },
  {
    name: 'a chunk does not lock the browser',
    scenario: 'in the midst of a chunk ∥ DELETE',
    isShort: true,
    function: { name: 'chunk_intend', find: /(and not b\.retired)\s+for share/, replace: '$1' },
  },
  {
    name: 'a chunk does not look whether the browser is retired',
    scenario: 'chunk ∥ DELETE ∥ worker: ',
    function: { name: 'chunk_intend', find: /and not b\.retired/, replace: '' },
  },
  {
    name: 'a chunk does not lock the session',
    scenario: 'in the midst of a chunk ∥ the retention',
    function: {
      name: 'chunk_intend',
      find: /(interval '8 days')\s+for share/,
      replace: '$1',
    },
  },
  {
    name: 'a chunk does not look whether the session is closed',
    scenario: 'retention ∥ a chunk of a session of the last hour before it is too old, in a bucket',
    function: { name: 'chunk_intend', find: /and not s\.closed/, replace: '' },
  },
  {
    name: 'a confirmation asks neither for its intent nor for the time',
    scenario: 'an upload whose intent runs out ∥ the collector',
    bound: 2,
    ...take(/and c\.state = 'intent' and c\.intent_until > app_now\(\)/, confirmation),
  },
  {
    name: 'a confirmation does not look which upload it is of',
    scenario: 'an expired upload repeated',
    bound: 2,
    ...take(/and c\.blob_key = ¤\d+¤/, confirmation),
  },
  {
    name: 'a confirmation locks the chunk before the session',
    scenario: 'in the midst of a confirmation ∥ the same chunk',
    ...take(/for no key update/, confirmation),
  },
  {
    name: 'an upload that was refused leaves its blob',
    scenario: 'an upload whose intent runs out ∥ the collector',
    blobs: (blobs) => ({ ...blobs, delete: async () => {} }),
  },
  {
    name: 'the collector takes what may still be confirmed',
    scenario: 'an upload ∥ the collector',
    ...take(/and intent_until <= app_now\(\)/, collection),
  },
  {
    name: 'the collector does not look again at what it has waited for',
    scenario: 'in the midst of a confirmation ∥ the collector',
    statements: [
      { of: collection, find: /for update skip locked/, replace: '' },
      { of: collection, find: /and c\.state <> 'stored'/, replace: '' },
    ],
  },
]

/** Of the steps of an erasure. */
const ofSteps: Seed[] = [
  {
    name: 'the worker does not wait for uploads to a bucket',
    scenario: 'chunk ∥ DELETE ∥ worker, in a bucket',
    isShort: true,
    steps: without('drain'),
  },
  {
    name: 'the worker ends intents that may still be confirmed',
    scenario: 'chunk ∥ DELETE ∥ worker, in a bucket',
    bound: 2,
    ...take(/and c\.intent_until <= app_now\(\)/, /set state = 'dead'[\s\S]*l\.person_id/),
  },
  {
    name: 'expired intents stay open',
    scenario: 'an uploader dies before its put ∥ DELETE ∥ worker, in a folder',
    ...take(/set state = 'dead'/, /l\.person_id/, "set state = 'intent'"),
  },
  {
    name: 'keys are not destroyed',
    scenario: 'DELETE ∥ worker',
    steps: without('destroy_keys'),
  },
  {
    name: 'blobs go before their key',
    scenario: 'DELETE ∥ worker',
    isShort: true,
    steps: swapped('destroy_keys', 'delete_blobs'),
  },
  {
    name: 'rows go before their blobs',
    scenario: 'DELETE ∥ worker',
    steps: swapped('delete_blobs', 'delete_rows'),
  },
  {
    name: 'rows are not deleted',
    scenario: 'DELETE ∥ worker',
    steps: without('delete_rows'),
  },
  {
    name: 'the person goes before it is in the ledger',
    scenario: 'DELETE ∥ worker',
    steps: without('write_ledger'),
  },
  {
    name: 'blobs are not deleted, and verified to be',
    scenario: 'DELETE ∥ worker',
    steps: without('delete_blobs', 'verify'),
  },
  {
    name: 'keys are not destroyed, and verified to be',
    scenario: 'DELETE ∥ worker',
    steps: without('destroy_keys', 'verify'),
  },
  {
    name: 'kept recordings stay linked',
    scenario: 'chunk ∥ DELETE with the recordings kept',
    ...take(
      /and person_id = any\(¤1¤::bigint\[\]\)/,
      /delete from person_browsers[\s\S]*person_id/,
      'and person_id = any(¤1¤::bigint[]) and false',
    ),
  },
  {
    name: 'a receipt does not know the one before it',
    scenario: 'two workers at two persons',
    bound: 0,
    ...take(/decode\(¤\d+¤, 'hex'\)/, /update receipt_chains/, "sha256('')"),
  },
]

/** Of who may work on a job, and until when. */
const ofLeases: Seed[] = [
  {
    name: 'the fence holds nobody',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings deleted)',
    isShort: true,
    ...take(isHeld, fence),
  },
  {
    name: 'the fence does not lock the job',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings deleted)',
    ...take(/for no key update/, fence),
  },
  {
    name: 'the completion does not ask for the lease',
    scenario: 'a lease runs out ∥ the worker',
    ...take(isHeld, completion),
  },
  {
    name: 'neither the fence nor the completion asks for the lease',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings kept)',
    statements: [
      { of: fence, find: isHeld, replace: '' },
      { of: completion, find: isHeld, replace: '' },
    ],
  },
  {
    name: 'a lease that is over may be renewed',
    scenario: 'renewals ∥ the clock ∥ the reaper',
    ...take(/and lease_until > app_now\(\)/, /case when ¤\d+¤::boolean/),
  },
  {
    name: 'a lease that somebody else has may be renewed',
    scenario: 'renewals ∥ the clock ∥ the reaper',
    bound: 2,
    ...take(isHeld, /case when ¤\d+¤::boolean/),
  },
  {
    name: 'an attempt whose lease is over may fail',
    scenario: 'attempt 1 fails',
    ...take(isHeld, /app_now\(\) as failed_at/),
  },
  {
    name: 'an attempt that fails does not lock its job',
    scenario: 'in the midst of a takeover',
    ...take(/for no key update/, /app_now\(\) as failed_at/),
  },
  {
    name: 'leases are reaped before they are over',
    scenario: 'a lease runs out ∥ the worker',
    ...take(/and lease_until <= \(select app_now\(\)\)/, /lease_until as failed_at/),
  },
  {
    name: 'the reaper does not lock what it has found',
    scenario: 'in the midst of a renewal ∥ the reaper',
    isShort: true,
    ...take(/for no key update skip locked/, /lease_until as failed_at/),
  },
  {
    name: 'a job is claimed that somebody has',
    scenario: 'two workers: ',
    ...take(/and lease_token is null/, /with due as/),
  },
  {
    name: 'a claim does not lock what it has found',
    scenario: 'in the midst of a claim',
    ...take(/for update skip locked/, /with due as/),
  },
  {
    name: 'a job is claimed before it is due',
    scenario: 'an attempt fails ∥ another worker',
    ...take(/and next_attempt_at <= \(select app_now\(\)\)/, /with due as/),
  },
  {
    name: 'the delay after an attempt is left out',
    scenario: 'an attempt fails ∥ another worker',
    ...take(/held\.failed_at \+[\s\S]*?interval '1 second'/, /ended as/, 'held.failed_at'),
  },
  {
    name: 'a person stays flagged when its job has failed',
    scenario: 'the fifth attempt fails ∥ DELETE',
    ...take(
      /update persons set deletion_job_id = null/,
      /freed as/,
      'update persons set deletion_job_id = persons.deletion_job_id',
    ),
  },
  {
    name: 'an attempt is given back by whoever had it once',
    scenario: 'a graceful stop',
    ...take(isHeld, /attempts = attempts - 1/),
  },
]

/** Of persons that are erased together. */
const ofPersonsTogether: Seed[] = [
  {
    name: 'persons are erased together of whom one is kept and one not',
    scenario: 'persons together, one of them kept and one not',
    bound: 0,
    isShort: true,
    ...take(/and one\.keep_recordings = first\.keep_recordings/, /with due as/),
  },
  {
    name: 'of persons together the fence holds nobody',
    scenario: 'persons together ∥ one of them is taken over',
    ...take(isHeld, fence),
  },
  {
    name: 'of persons together the completion does not ask for the lease',
    scenario: 'persons together ∥ the clock ∥ the reaper',
    ...take(isHeld, completion),
  },
]

/** Of the ledger and the retention, which take recordings away as well. */
const ofOthers: Seed[] = [
  {
    name: 'a job that is over may be taken over',
    scenario: 'the ledger is compared',
    ...take(/and status in \('pending', 'running'\)/, /with taken as/),
  },
  {
    name: 'the ledger forgets what an earlier entry names',
    scenario: 'the ledger is compared',
    bound: 2,
    blobs: (blobs) => ({
      ...blobs,
      async get(key, signal) {
        const bytes = await blobs.get(key, signal)
        if (!key.startsWith('ledger/')) return bytes
        return Buffer.from(JSON.stringify({ ...JSON.parse(String(bytes)), browserIds: [] }))
      },
    }),
  },
  {
    name: 'the retention does not close what it deletes',
    scenario: 'retention ∥ a chunk of a session of the last hour before it is too old, in a bucket',
    bound: 2,
    statements: [
      { of: /with old as/, find: /set closed = true/, replace: 'set closed = s.closed' },
      {
        of: /"browserId"\s+from sessions s/,
        find: /and closed/,
        replace: "and started_at < app_now() - interval '7 days'",
      },
    ],
  },
  {
    name: 'the retention does not wait for uploads',
    scenario: 'retention ∥ a chunk of a session of the last hour before it is too old, in a bucket',
    ...take(
      /and not exists \(\s*select from chunks c[\s\S]*?'intent'\)/,
      /"browserId"\s+from sessions s/,
    ),
  },
  {
    name: 'the retention does not lock the browsers it looks at again',
    scenario: 'retention ∥ start and identify',
    bound: 2,
    ...take(/\s+for update/, /^\s*select from browsers\s[\s\S]*any/),
  },
  {
    name: 'the retention takes browsers that have a session again',
    scenario: 'retention ∥ start and identify',
    ...take(/and not exists \(select from sessions[\s\S]*?\)/, unusedBrowsers),
  },
  {
    name: 'the retention takes browsers that somebody has again',
    scenario: 'retention ∥ start and identify',
    ...take(/and not exists \(select from person_browsers[\s\S]*?\)/, unusedBrowsers),
  },
  {
    name: 'the retention does not retire the browsers it takes',
    scenario: 'retention ∥ start and identify',
    ...take(/set retired = true/, unusedBrowsers, 'set retired = b.retired'),
  },
]

/** Every lock, fence, condition and order that keeps an erasure whole, taken away one at a time. */
export const seeds: Seed[] = [
  ...ofRequests,
  ...ofUploads,
  ...ofSteps,
  ...ofLeases,
  ...ofPersonsTogether,
  ...ofOthers,
]

/** What can be taken away and nothing is broken, as something else holds the same. */
export interface Spare extends Fault {
  name: string
  /** Why it is there all the same. */
  why: string
  /** Where it would be noticed, by the beginnings of their names. */
  scenarios: string[]
}

export const spares: Spare[] = [
  {
    name: 'DELETE locks the browsers before it retires them',
    why: 'the update locks them as well; this gives the locks their order',
    scenarios: ['in the midst of a start ∥', 'in the midst of a chunk ∥ DELETE', 'start and chunk'],
    ...take(/for update of b/, /select from browsers b/),
  },
  {
    name: 'the retention locks the sessions it closes',
    why: 'the update locks them as well; this passes over those that are in use',
    scenarios: ['in the midst of a chunk ∥ the retention', 'retention ∥ a chunk'],
    ...take(/for update skip locked/, /with old as/),
  },
  {
    name: 'rows of chunks are locked before they are deleted',
    why: 'the deletion locks them as well; this gives the locks their order',
    scenarios: ['retention ∥ DELETE ∥ worker'],
    ...take(/for update/, /select session_id, tab, number\s+from chunks/),
  },
  {
    name: 'a repeated chunk locks the one that is there',
    why: 'whoever confirms that one has the lock of the session',
    scenarios: ['in the midst of a confirmation ∥ the same chunk when'],
    function: {
      name: 'chunk_intend',
      find: /(c\.tab = in_tab and c\.number = in_number)\s+for update/,
      replace: '$1',
    },
  },
  {
    name: 'a confirmation asks for its intent',
    why: 'an intent that ended before its time was ended by the uploader itself',
    scenarios: ['an upload whose intent runs out ∥ the collector', 'an expired upload repeated'],
    ...take(/and c\.state = 'intent'/, confirmation),
  },
  {
    name: 'a confirmation asks for the time',
    why: 'whoever waits for the end of an intent ends it before going on',
    scenarios: ['an upload whose intent runs out ∥ the collector', 'an expired upload repeated'],
    ...take(/and c\.intent_until > app_now\(\)/, confirmation),
  },
  {
    name: 'a start looks at first whether its browser is retired',
    why: 'it looks again under the lock; this saves making a place for blobs',
    scenarios: ['start ∥ DELETE ∥ worker'],
    ...take(/and not retired/, /^\s*select from browsers\s[\s\S]*and not retired/),
  },
]

function without(...names: string[]) {
  return (steps: Step[]) => steps.filter(({ name }) => !names.includes(name))
}

function swapped(one: string, other: string) {
  return (steps: Step[]) => {
    const [i, j] = [one, other].map((name) => steps.findIndex((step) => step.name === name))
    const result = [...steps]
    if (i === undefined || j === undefined || i < 0 || j < 0) return result
    result[i] = steps[j] as Step
    result[j] = steps[i] as Step
    return result
  }
}
