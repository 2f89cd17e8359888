import { findProject, type Project } from '../src/projects/store.ts'
import { type Opened, open } from './open.ts'
import type { Stop } from './signals.ts'

/** Invalid arguments; the message says which are valid. The process exits with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The job or check of the command failed. The process exits with 3. */
export class JobFailed extends Error {
  override readonly name = 'JobFailed'
}

/** Options of several commands. */
export const json = { type: 'boolean', description: 'Print one line of JSON.' } as const
export const jsonLines = {
  type: 'boolean',
  description: 'Print JSON lines: progress, then the result.',
} as const
export const project = { type: 'string', required: true, description: "The project's id." } as const

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Runs a command on the database. Starts the embedded one if it is not running. */
export async function withDatabase(
  work: (opened: Opened) => Promise<void>,
  stop?: Stop,
): Promise<void> {
  const opened = await open(stop)
  try {
    await work(opened)
  } finally {
    await opened.close()
  }
}

export async function existingProject({ db }: Opened, id: string): Promise<Project> {
  const project = /^[1-9]\d{0,8}$/.test(id) ? await findProject(db.sql, Number(id)) : undefined
  if (!project) throw new UsageError('There is no such project; `lethe projects list` shows them.')
  return project
}

export function printTable<Row extends object>(
  rows: Row[],
  columns: Partial<Record<keyof Row, string>>,
): void {
  const names = Object.keys(columns) as (keyof Row)[]
  const lines = [names.map((name) => columns[name] ?? '')].concat(
    rows.map((row) => names.map((name) => printable(String(row[name] ?? '')))),
  )
  const widths = names.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)))
  for (const line of lines) {
    print(
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

/** Escapes control characters and line breaks: anybody can choose an externalId. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
  })
}

export function isName(text: string): boolean {
  return (
    text.trim() !== '' && [...text].length <= 200 && text.isWellFormed() && !text.includes('\0')
  )
}

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** A duration as in 90s, 30m, 24h or 7d; at most a year. */
export function secondsOf(text: string): number {
  const [, number = '', unit = ''] = /^(\d{1,8})([smhd])$/.exec(text) ?? []
  const seconds = Number(number) * (unitSeconds[unit] ?? Number.NaN)
  if (!(number !== '' && seconds <= 366 * 86_400)) {
    throw new UsageError(
      'A duration is a number and a unit, as in 90s, 30m, 24h or 7d, at most a year.',
    )
  }
  return seconds
}
