import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import type { DeletionPosition } from './deletion-store.ts'

const rowsAPart = 500

const columns: [string, (deletion: Deletion) => string | number | boolean | null][] = [
  ['job_id', ({ job }) => job.id],
  ['external_id', ({ job }) => job.externalId],
  ['status', ({ job }) => job.status],
  ['keep_recordings', ({ job }) => job.keepRecordings],
  ['requested_by', ({ requestedBy: { kind, name } }) => (name ? `${kind}: ${name}` : kind)],
  ['requested_at', ({ job }) => job.createdAt],
  ['started_at', ({ job }) => job.startedAt],
  ['completed_at', ({ job }) => job.completedAt],
  ['failed_at', ({ failedAt }) => failedAt],
  ['attempts', ({ attempts }) => attempts],
  ['last_error_code', ({ lastErrorCode }) => lastErrorCode],
  ['removed_sessions', ({ removed }) => removed.sessions],
  ['removed_chunks', ({ removed }) => removed.chunks],
  ['removed_blobs', ({ removed }) => removed.blobs],
  ['removed_bytes', ({ removed }) => removed.bytes],
  ['removed_browsers', ({ removed }) => removed.browsers],
]

/** Deletions as CSV (RFC 4180), read and written part by part until there are no more. */
export async function* deletionsCsv(
  read: (after: DeletionPosition | null, limit: number) => Promise<Deletion[]>,
): AsyncGenerator<string> {
  yield lineOf(columns.map(([name]) => name))
  let after: DeletionPosition | null = null
  for (;;) {
    const deletions: Deletion[] = await read(after, rowsAPart)
    yield deletions.map((one) => lineOf(columns.map(([, read]) => read(one)))).join('')
    const last = deletions.at(-1)
    if (!last || deletions.length < rowsAPart) return
    after = { createdAt: last.job.createdAt, id: last.job.id }
  }
}

function lineOf(values: (string | number | boolean | null)[]): string {
  return `${values.map(cellOf).join(',')}\r\n`
}

/**
 * A spreadsheet takes a text that begins like a formula for one, and externalIds are whatever
 * somebody chose: an apostrophe before it makes it text again.
 */
function cellOf(value: string | number | boolean | null): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
