import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import type { Tone } from '../design/chip.tsx'

export const statusWords: Record<Deletion['job']['status'], { text: string; tone: Tone }> = {
  pending: { text: 'Waiting', tone: 'warn' },
  running: { text: 'Running', tone: 'warn' },
  completed: { text: 'Completed', tone: 'ok' },
  failed: { text: 'Failed', tone: 'danger' },
}

const steps: Record<string, string> = {
  drain: 'waits for uploads under way',
  destroy_keys: 'destroys the keys of the recordings',
  delete_blobs: 'deletes the recorded data',
  delete_rows: 'deletes the sessions',
  verify: 'checks that everything is gone',
  write_ledger: 'notes the erasure in the ledger',
  delete_browsers: 'deletes the browsers',
  forget_person: 'removes the person',
}

/** A step of the erasure in words; one that is not known here, by its own name. */
export function stepText(step: string): string {
  return steps[step] ?? step.replaceAll('_', ' ')
}

const errorCodes: Record<string, string> = {
  uploads_open: 'Uploads were still under way.',
  keys_left: 'Keys of recordings were left.',
  blobs_left: 'Some of the recorded data was left.',
  rows_left: 'Rows of recordings were left.',
  blobs_timed_out: 'The blob store did not answer in time.',
  blobs_unreachable: 'The blob store could not be reached.',
  blobs_access_denied: 'The blob store refused the access.',
  blobs_bucket_missing: 'The bucket of the blob store is not there.',
  blobs_not_empty: 'Something keeps writing to the blob store.',
  blobs_delete_refused: 'The blob store keeps some of the data, perhaps under a lock.',
  blobs_versions_hidden: 'The bucket keeps old versions and does not show them.',
  blobs_symbolic_link: 'A symbolic link stands where a folder should.',
  database_unavailable: 'The database could not be reached.',
  worker_lost: 'The worker stopped or was cut off.',
}

/** What an error code of an attempt means. */
export function errorText(code: string): string {
  if (errorCodes[code]) return errorCodes[code]
  if (code.startsWith('blobs_')) return 'The blob store failed.'
  return code.startsWith('database_') ? 'The database refused a statement.' : 'The step failed.'
}

export function isOpen({ job }: Deletion): boolean {
  return job.status === 'pending' || job.status === 'running'
}
