import type { Deletion } from '@lethe/contract/dashboard-deletions.ts'
import type { CsvColumns } from './csv.ts'

export const deletionColumns: CsvColumns<Deletion> = [
  ['job_id', ({ job }) => job.id],
  ['external_id', ({ job }) => job.externalId],
  ['status', ({ job }) => job.status],
  ['keep_recordings', ({ job }) => job.keepRecordings],
  ['requested_by', ({ requestedBy: { kind, name } }) => (name ? `${kind}: ${name}` : kind)],
  ['requested_by_id', ({ requestedBy }) => requestedBy.id],
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
