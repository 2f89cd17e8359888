import type { Step } from '../../src/erasure/steps.ts'
import type { Clause, Fault } from './faults.ts'

/** A fault, and the scenario that must detect it. */
export interface NoticedFault extends Fault {
  name: string
  /** The start of the scenario's name. */
  scenario: string
  /** The preemptions it needs; 1 if not given. */
  bound?: number
  /** Also runs in normal runs, as a sample of all faults. */
  isShort?: true
}

/** Removes the clauses with these anchors. */
const remove = (...names: string[]) => ({ clauses: names.map((name) => ({ name })) })

/** Replaces the clause with this anchor. */
const replace = (name: string, instead: string) => ({ clauses: [{ name, instead }] })

/** The condition that a worker still holds its lease, which several statements share. */
const lease = (within: string): Clause[] => [
  { name: 'held-token', within },
  { name: 'held-until', within },
]

/** Faults in requests: DELETE, POST, PATCH and identify. */
const ofRequests: NoticedFault[] = [
  {
    name: 'DELETE does not lock the person',
    scenario: 'DELETE ∥ DELETE, same flag',
    isShort: true,
    ...remove('delete-locks-person'),
  },
  {
    name: 'the worker retires no browsers',
    scenario: 'chunk ∥ DELETE ∥ worker: ',
    isShort: true,
    steps: without('retire_browsers'),
  },
  {
    name: 'DELETE does not flag the person',
    scenario: 'POST ∥ DELETE',
    ...replace('delete-flags-person', 'update persons set deletion_job_id = null'),
  },
  {
    name: 'the update of a merge does not check the flag',
    scenario: 'POST ∥ DELETE',
    function: { name: 'person_write', find: 'and p.deletion_job_id is null', instead: '' },
  },
  {
    name: 'POST does not check whether the person is being deleted',
    scenario: 'POST ∥ DELETE',
    function: {
      name: 'person_write',
      find: 'person.deletion_job_id is not null',
      instead: 'false',
    },
  },
  {
    name: 'identify does not lock the person',
    scenario: 'identify ∥ DELETE ∥ worker',
    isShort: true,
    ...remove('link-locks-person'),
  },
  {
    name: 'identify does not check the flag under the lock',
    scenario: 'identify ∥ DELETE ∥ worker',
    bound: 2,
    ...replace('link-flag', 'false as "isBeingDeleted"'),
  },
  {
    name: 'identify does not lock the browser',
    scenario: 'retention ∥ start and identify',
    bound: 2,
    ...remove('link-locks-browser'),
  },
  {
    name: 'identify does not check under the lock whether the browser is retired',
    scenario: 'retention ∥ start and identify',
    ...replace('link-not-retired', 'select false as retired'),
  },
  {
    name: 'identify does not check first whether the browser is retired',
    scenario: 'a stale identify ∥ worker',
    ...replace('identify-not-retired', 'select false as "isRetired",'),
  },
  {
    name: 'a browser may be linked again',
    scenario: 'two identifies of one browser',
    clauses: [
      { name: 'link-looks', instead: 'and false' },
      {
        name: 'link-once',
        instead:
          'on conflict (project_id, browser_id) do update set person_id = excluded.person_id',
      },
    ],
  },
]

/** Faults in uploads of browsers. */
const ofUploads: NoticedFault[] = [
  {
    name: 'a start does not lock the browser',
    scenario: 'halfway through a start',
    ...remove('start-locks-browser'),
  },
  {
    name: 'a start does not check under the lock whether the browser is retired',
    scenario: 'start ∥ DELETE ∥ worker',
    bound: 2,
    clauses: [
      { name: 'browser-not-retired', within: 'start' },
      { name: 'browser-not-deleting', within: 'start', instead: 'and false' },
    ],
  },
  {
    name: 'a chunk does not lock the browser',
    scenario: 'halfway through a chunk ∥ DELETE',
    isShort: true,
    function: {
      name: 'chunk_intend',
      find: 'is not null)\n  for share',
      instead: 'is not null)',
    },
    ...remove('intend-locks-browser'),
  },
  {
    name: 'a chunk does not check whether the browser is retired',
    scenario: 'chunk ∥ DELETE with the recordings kept',
    function: { name: 'chunk_intend', find: 'and not b.retired', instead: '' },
    clauses: [{ name: 'browser-not-retired', within: 'intend' }],
  },
  {
    name: 'a chunk does not check whether the person is being deleted',
    scenario: 'a chunk and a start after DELETE',
    bound: 0,
    isShort: true,
    function: {
      name: 'chunk_intend',
      find: 'and p.deletion_job_id is not null',
      instead: 'and false',
    },
    clauses: [{ name: 'browser-not-deleting', within: 'intend', instead: 'and false' }],
  },
  {
    name: 'a start does not check whether the person is being deleted',
    scenario: 'a chunk and a start after DELETE',
    bound: 0,
    clauses: [
      { name: 'browser-not-deleting', within: 'start', instead: 'and false' },
      { name: 'browser-not-deleting', within: 'start-at-first', instead: 'and false' },
    ],
  },
  {
    name: 'a chunk does not lock the session',
    scenario: 'halfway through a chunk ∥ the retention',
    function: {
      name: 'chunk_intend',
      find: "interval '8 days'\n  for share",
      instead: "interval '8 days'",
    },
    ...remove('intend-locks-session'),
  },
  {
    name: 'a chunk does not check whether the session is closed',
    scenario: 'retention ∥ a late chunk of an old session, in a bucket',
    function: { name: 'chunk_intend', find: 'and not s.closed', instead: '' },
    ...remove('intend-session-open'),
  },
  {
    name: 'a confirmation checks neither its intent nor the time',
    scenario: 'an upload whose intent expires ∥ the collector',
    bound: 2,
    ...remove('confirm-intent', 'confirm-time'),
  },
  {
    name: 'a confirmation does not check which upload it belongs to',
    scenario: 'an expired upload repeated',
    bound: 2,
    ...remove('confirm-blob'),
  },
  {
    name: 'a confirmation locks the chunk before the session',
    scenario: 'halfway through a confirmation ∥ the same chunk',
    ...remove('confirm-locks-session'),
  },
  {
    name: 'an upload that was refused leaves its blob',
    scenario: 'an upload whose intent expires ∥ the collector',
    blobs: (blobs) => ({ ...blobs, delete: async () => {} }),
  },
  {
    name: 'a pack checks neither its intent nor the time',
    scenario: 'a pack whose intent expires ∥ the collector',
    bound: 2,
    ...remove('pack-intent'),
  },
  {
    name: 'a pack does not check which upload it belongs to',
    scenario: 'a pack that takes too long ∥ another',
    bound: 2,
    ...remove('pack-blob'),
  },
  {
    name: 'a pack includes chunks that are gone',
    scenario: 'a pack that takes too long ∥ another',
    bound: 2,
    ...remove('pack-replaces-stored'),
  },
  {
    name: 'a packed chunk that is sent again is taken for a new one',
    scenario: 'a pack ∥ a chunk sent again',
    isShort: true,
    function: {
      name: 'chunk_intend',
      find: 'session_packed is not null and exists',
      instead: 'false and exists',
    },
    ...remove('intend-unpacked'),
  },
  {
    name: 'the collector deletes intents that can still be confirmed',
    scenario: 'an upload ∥ the collector',
    ...remove('collect-expired'),
  },
  {
    name: 'the collector does not check again after waiting for a lock',
    scenario: 'halfway through a confirmation ∥ the collector',
    ...remove('collect-locks-chunk', 'collect-unconfirmed'),
  },
]

/** Faults in the steps of an erasure. */
const ofSteps: NoticedFault[] = [
  {
    name: 'the worker does not wait for uploads to a bucket',
    scenario: 'chunk ∥ DELETE ∥ worker, in a bucket',
    isShort: true,
    steps: without('drain'),
  },
  {
    name: 'the worker ends intents that can still be confirmed',
    scenario: 'chunk ∥ DELETE ∥ worker, in a bucket',
    bound: 2,
    ...remove('drain-expired'),
  },
  {
    name: 'expired intents stay open',
    scenario: 'an uploader dies before its put ∥ DELETE ∥ worker, in a folder',
    ...replace('drain-ends-intents', "update chunks c set state = 'intent'"),
  },
  {
    name: 'keys are not destroyed',
    scenario: 'DELETE ∥ worker',
    steps: without('destroy_keys'),
  },
  {
    name: 'blobs are deleted before their key',
    scenario: 'DELETE ∥ worker',
    isShort: true,
    steps: swapped('destroy_keys', 'delete_blobs'),
  },
  {
    name: 'rows are deleted before their blobs',
    scenario: 'DELETE ∥ worker',
    steps: swapped('delete_blobs', 'delete_rows'),
  },
  {
    name: 'rows are not deleted',
    scenario: 'DELETE ∥ worker',
    steps: without('delete_rows'),
  },
  {
    name: 'the person is deleted before it is in the ledger',
    scenario: 'DELETE ∥ worker',
    steps: without('write_ledger'),
  },
  {
    name: 'blobs are neither deleted nor verified',
    scenario: 'DELETE ∥ worker',
    steps: without('delete_blobs', 'verify'),
  },
  {
    name: 'keys are neither destroyed nor verified',
    scenario: 'DELETE ∥ worker',
    steps: without('destroy_keys', 'verify'),
  },
  {
    name: 'kept recordings stay linked',
    scenario: 'chunk ∥ DELETE with the recordings kept',
    ...replace('unlink-browsers', 'and false'),
  },
  {
    name: 'a receipt does not contain the hash of the previous one',
    scenario: 'two workers at two persons',
    bound: 0,
    ...replace('receipt-chain', "update receipt_chains set head = sha256('')"),
  },
]

/** Faults in claims and leases. */
const ofLeases: NoticedFault[] = [
  {
    name: 'the fence does not check the lease',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings deleted)',
    isShort: true,
    clauses: lease('fence'),
  },
  {
    name: 'the fence does not lock the job',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings deleted)',
    ...remove('fence-locks'),
  },
  {
    name: 'the completion does not check the lease',
    scenario: 'a lease expires ∥ the worker',
    clauses: lease('completion'),
  },
  {
    name: 'neither the fence nor the completion checks the lease',
    scenario:
      'a worker that loses its lease while it works ∥ the one that takes over (recordings kept)',
    clauses: [...lease('fence'), ...lease('completion')],
  },
  {
    name: 'an expired lease may be renewed',
    scenario: 'renewals ∥ the clock ∥ the reaper',
    clauses: [{ name: 'held-until', within: 'renewal' }],
  },
  {
    name: 'a lease of another worker may be renewed',
    scenario: 'renewals ∥ the clock ∥ the reaper',
    bound: 2,
    clauses: lease('renewal'),
  },
  {
    name: 'an attempt with an expired lease may fail',
    scenario: 'attempt 1 fails',
    clauses: lease('failure'),
  },
  {
    name: 'an attempt that fails does not lock its job',
    scenario: 'halfway through a takeover',
    ...remove('failure-locks'),
  },
  {
    name: 'leases are reaped before they expire',
    scenario: 'a lease expires ∥ the worker',
    ...remove('reap-lost', 'find-lost'),
  },
  {
    name: 'the reaper does not lock the jobs it finds',
    scenario: 'halfway through a renewal ∥ the reaper',
    isShort: true,
    ...remove('reap-locks'),
  },
  {
    name: 'a job is claimed that another worker holds',
    scenario: 'two workers: ',
    ...remove('claim-free', 'find-free'),
  },
  {
    name: 'a claim does not lock the jobs it finds',
    scenario: 'halfway through a claim',
    ...remove('claim-locks'),
  },
  {
    name: 'a job is claimed before it is due',
    scenario: 'an attempt fails ∥ another worker',
    ...remove('claim-due'),
  },
  {
    name: 'the delay after an attempt is skipped',
    scenario: 'an attempt fails ∥ another worker',
    ...replace('failure-delay', 'app_now() as next_at'),
  },
  {
    name: 'a person stays flagged when its job has failed',
    scenario: 'the fifth attempt fails ∥ DELETE',
    ...replace(
      'failure-frees-person',
      'update persons set deletion_job_id = persons.deletion_job_id',
    ),
  },
  {
    name: 'an attempt is handed back by a worker that lost it',
    scenario: 'a graceful stop',
    clauses: lease('hand-back'),
  },
]

/** Faults in the erasure of several persons together. */
const ofPersonsTogether: NoticedFault[] = [
  {
    name: 'persons with different keepRecordings are erased together',
    scenario: 'persons together, one with the recordings kept',
    bound: 0,
    isShort: true,
    ...remove('claim-alike'),
  },
  {
    name: 'for persons together, the fence does not check the lease',
    scenario: 'persons together ∥ one of them is taken over',
    clauses: lease('fence'),
  },
  {
    name: 'for persons together, the completion does not check the lease',
    scenario: 'persons together ∥ the clock ∥ the reaper',
    clauses: lease('completion'),
  },
]

/** Faults in the ledger and the retention, which delete recordings too. */
const ofOthers: NoticedFault[] = [
  {
    name: 'an ended job may be taken over',
    scenario: 'the ledger is compared',
    ...remove('takeover-open'),
  },
  {
    name: 'an entry of the ledger is overwritten with fewer browsers',
    scenario: 'an attempt after one that wrote the ledger',
    bound: 0,
    blobs: (blobs) => ({
      ...blobs,
      get: (key, signal) =>
        key.startsWith('ledger/') ? Promise.resolve(Buffer.from('')) : blobs.get(key, signal),
    }),
  },
  {
    name: 'a comparison does not lock the state of the ledger',
    scenario: 'the ledger of a restored database',
    ...remove('comparison-locks-state'),
  },
  {
    name: 'the retention does not close the sessions it deletes',
    scenario: 'retention ∥ a late chunk of an old session, in a bucket',
    bound: 2,
    clauses: [
      { name: 'close-session', instead: 'update sessions s set closed = s.closed' },
      { name: 'expired-is-closed', instead: "and started_at < app_now() - interval '7 days'" },
    ],
  },
  {
    name: 'the retention does not wait for uploads',
    scenario: 'retention ∥ a late chunk of an old session, in a bucket',
    ...remove('expired-is-drained'),
  },
  {
    name: 'the retention does not lock the browsers it checks again',
    scenario: 'retention ∥ start and identify',
    bound: 2,
    ...remove('unused-locks-browser'),
  },
  {
    name: 'the retention deletes browsers that have a session again',
    scenario: 'retention ∥ start and identify',
    ...remove('unused-no-session'),
  },
  {
    name: 'the retention does not lock the people it deletes',
    scenario: 'retention ∥ identify and POST of a person',
    ...remove('expired-locks-persons'),
  },
  {
    name: 'the retention does not retire the browsers it deletes',
    scenario: 'retention ∥ start and identify',
    ...replace('unused-retires', 'update browsers b set retired = b.retired'),
  },
]

/** Every lock, fence, condition and order that an erasure relies on, removed one at a time. */
export const noticedFaults: NoticedFault[] = [
  ...ofRequests,
  ...ofUploads,
  ...ofSteps,
  ...ofLeases,
  ...ofPersonsTogether,
  ...ofOthers,
]

/** A fault that breaks nothing, because something else ensures the same. */
export interface RedundantFault extends Fault {
  name: string
  /** Why the clause exists nevertheless. */
  why: string
  /** The scenarios that would detect it, by the start of their names. */
  scenarios: string[]
}

export const redundantFaults: RedundantFault[] = [
  {
    name: 'POSTs in one statement skip the persons that others have locked',
    why: 'person_write locks the row itself; this keeps the other POSTs from waiting for it',
    scenarios: ['POSTs in one statement'],
    function: { name: 'persons_write', find: 'for no key update skip locked', instead: '' },
  },
  {
    name: 'the worker locks the browsers before it retires them',
    why: 'the update locks them as well; this gives the locks their order',
    scenarios: ['halfway through a start ∥', 'halfway through a chunk ∥ DELETE', 'start and chunk'],
    ...remove('retire-locks-browsers'),
  },
  {
    name: 'browsers are locked before they are deleted',
    why: 'the deletion locks them as well; this gives the locks their order',
    scenarios: ['retention ∥ DELETE ∥ worker at a browser'],
    ...remove('delete-locks-browsers'),
  },
  {
    name: 'the retention locks the browsers it marks',
    why: 'the update locks them as well; this gives the locks their order',
    scenarios: ['retention ∥ DELETE ∥ worker at the same session'],
    ...remove('expired-locks-browsers'),
  },
  {
    name: 'the retention locks the sessions it closes',
    why: 'the update locks them as well; this skips those that are in use',
    scenarios: ['halfway through a chunk ∥ the retention', 'retention ∥ a late chunk'],
    ...remove('close-locks-session'),
  },
  {
    name: 'rows of chunks are locked before they are deleted',
    why: 'the deletion locks them as well; this gives the locks their order',
    scenarios: ['retention ∥ DELETE ∥ worker at the same session'],
    ...remove('delete-locks-chunks'),
  },
  {
    name: 'a pack locks its session before its chunks',
    why: 'the update of the session locks it as well; this gives the locks their order',
    scenarios: ['a pack ∥ a chunk sent again'],
    ...remove('pack-locks-session'),
  },
  {
    name: 'a repeated chunk locks the one that is there',
    why: 'the statement that confirms that one has the lock of the session',
    scenarios: ['halfway through a confirmation ∥ the same chunk after'],
    function: {
      name: 'chunk_intend',
      find: 'c.tab = in_tab and c.number = in_number\n  for update',
      instead: 'c.tab = in_tab and c.number = in_number',
    },
  },
  {
    name: 'a confirmation checks its intent',
    why: 'an intent that ended before its time was ended by the uploader itself',
    scenarios: ['an upload whose intent expires ∥ the collector', 'an expired upload repeated'],
    ...remove('confirm-intent'),
  },
  {
    name: 'a confirmation checks the time',
    why: 'a caller that waits for the end of an intent ends it before going on',
    scenarios: ['an upload whose intent expires ∥ the collector', 'an expired upload repeated'],
    ...remove('confirm-time'),
  },
  {
    name: 'a start checks first whether its browser is retired',
    why: 'it checks again under the lock; this avoids creating a place for blobs',
    scenarios: ['start ∥ DELETE ∥ worker'],
    clauses: [{ name: 'browser-not-retired', within: 'start-at-first' }],
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
