/** What a backup consists of, in this order. The rows of a table follow on it, in parts. */
export type BackupRecord =
  | Schema
  | { kind: 'table'; name: string; columns: string[] }
  | { kind: 'rows'; bytes: Buffer }
  | { kind: 'end'; rows: Record<string, number>; sequences: Sequence[] }

export interface Schema {
  kind: 'schema'
  createdAt: string
  migrations: Migration[]
  /** Whether the data keys of recordings are in this database, or in that of KEY_DATABASE_URL. */
  hasDataKeys: boolean
}

export interface Migration {
  name: string
  sha256: string
}

/** `name` is quoted and has its schema, as all names in a backup. */
export interface Sequence {
  name: string
  last: string
  isCalled: boolean
}

/** Bytes so far, and of how many; an estimate while a database is read. */
export type OnProgress = (done: number, total: number) => void

/** A backup cannot be made, read or restored; the message is one line for an operator. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused'
}
