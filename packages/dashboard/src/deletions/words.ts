import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import type { Tone } from '../design/chip.tsx'

export const statusWords: Record<Deletion['job']['status'], { text: string; tone: Tone }> = {
  pending: { text: 'Waiting', tone: 'warn' },
  running: { text: 'Running', tone: 'warn' },
  completed: { text: 'Completed', tone: 'ok' },
  failed: { text: 'Failed', tone: 'danger' },
}

const steps: Record<string, string> = {
  drain: 'waiting for open uploads',
  destroy_keys: 'destroying recording keys',
  delete_blobs: 'deleting recorded data',
  delete_rows: 'deleting sessions',
  verify: 'verifying that everything is deleted',
  write_ledger: 'writing the erasure ledger',
  delete_browsers: 'deleting browsers',
  forget_person: 'removing the person',
}

/** A step of the erasure in words; one that is not known here, by its own name. */
export function stepText(step: string): string {
  return steps[step] ?? step.replaceAll('_', ' ')
}

const errorCodes: Record<string, string> = {
  uploads_open: 'Uploads were still in progress.',
  keys_left: 'Some recording keys were not destroyed.',
  blobs_left: 'Some recorded data was not deleted.',
  rows_left: 'Some recording rows were not deleted.',
  blobs_timed_out: 'Storage did not respond in time.',
  blobs_unreachable: 'Storage could not be reached.',
  blobs_access_denied: 'Storage denied access.',
  blobs_bucket_missing: 'The storage bucket does not exist.',
  blobs_not_empty: 'New data keeps being written to storage.',
  blobs_delete_refused: 'Storage refused to delete some data. It may be under an object lock.',
  blobs_versions_hidden: 'The bucket keeps old versions that Lethe cannot list.',
  blobs_symbolic_link: 'A symbolic link was found in place of a folder.',
  blobs_foreign_entry: 'Something that is not a recording was found among the recordings.',
  blobs_missing:
    'Recordings listed in the database were missing from storage. Restore them, or request the deletion again.',
  database_unavailable: 'The database could not be reached.',
  worker_lost: 'The worker stopped or lost its connection.',
}

/** What an error code of an attempt means. */
export function errorText(code: string): string {
  if (errorCodes[code]) return errorCodes[code]
  if (code.startsWith('blobs_')) return 'Storage failed.'
  return code.startsWith('database_') ? 'The database rejected a statement.' : 'The step failed.'
}

export function isOpen({ job }: Deletion): boolean {
  return job.status === 'pending' || job.status === 'running'
}
