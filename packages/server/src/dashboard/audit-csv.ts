import type { AuditEntry } from '@lethe/contract/dashboard-system.ts'
import type { CsvColumns } from './csv.ts'

export const auditColumns: CsvColumns<AuditEntry> = [
  ['id', ({ id }) => id],
  ['at', ({ at }) => at],
  ['action', ({ action }) => action],
  ['member_id', ({ member }) => member?.id ?? null],
  ['member_name', ({ member }) => member?.name ?? null],
  ['key_id', ({ key }) => key?.id ?? null],
  ['key_name', ({ key }) => key?.name ?? null],
  ['address_range', ({ addressRange }) => addressRange],
  ['project_id', ({ projectId }) => projectId],
  ['person_id', ({ personId }) => personId],
  ['subject_kind', ({ subject }) => subject?.kind ?? null],
  ['subject_id', ({ subject }) => subject?.id ?? null],
  ['details', ({ details }) => JSON.stringify(details)],
]
