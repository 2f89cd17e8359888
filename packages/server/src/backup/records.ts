/** The records of a backup, in this order. The rows of a table follow it, in parts. */
export type BackupRecord =
  | Schema
  | { kind: 'table'; name: string; columns: string[] }
  | { kind: 'rows'; bytes: Buffer }
  | { kind: 'end'; rows: Record<string, number>; sequences: Sequence[] }

export interface Schema {
  kind: 'schema'
  createdAt: string
  migrations: Migration[]
  /** Whether the data keys of recordings are included, and not in KEY_DATABASE_URL. */
  hasDataKeys: boolean
}

export interface Migration {
  name: string
  sha256: string
}

/** `name` is quoted and includes the schema, as all names in a backup. */
export interface Sequence {
  name: string
  last: string
  isCalled: boolean
}

/** Bytes so far and in total, which is estimated while a database is read. */
export type OnProgress = (done: number, total: number) => void

/** A backup cannot be created, read or restored. The message is one line for an operator. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused'
}
