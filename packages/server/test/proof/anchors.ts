import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from '../../src/sql.ts'
import type { Fault } from './faults.ts'

/*
 * The places in the product's SQL where a fault can be sown: lines that end with `-- fault: NAME`.
 * They are read from the sources, so new ones are found automatically.
 */

const sources = join(import.meta.dirname, '../../src')

/** A line of SQL in a source. */
export interface Line {
  /** `path: text`, for messages. */
  place: string
  text: string
  /** The name of its anchor. */
  anchor: string | undefined
}

/** Returns the lines in template literals that end with an anchor. */
export const anchoredLines = (): Line[] => linesOf('.').filter(({ anchor }) => anchor)

/** Returns the lines that lock rows, in these folders. */
export const lockingLines = (folders: readonly string[]): Line[] =>
  folders.flatMap(linesOf).filter(({ text }) => lock.test(text))

/** Returns the names of the statements that share clauses. */
export const namedStatements = (): string[] =>
  linesOf('.').flatMap(({ text }) => /^-- statement: (\S+)$/.exec(text)?.[1] ?? [])

const lock = /\bfor (?:no key )?(?:update|share)(?: skip locked)?\b/

function linesOf(folder: string): Line[] {
  return readdirSync(join(sources, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const source = readFileSync(join(sources, folder, file), 'utf8')
      // Every second part between backquotes is a template literal.
      const templates = source.split('`').filter((_, index) => index % 2 === 1)
      return templates.flatMap((template) =>
        template.split('\n').map((line) => ({
          place: `${join(folder, file)}: ${line.trim()}`,
          text: line.trim(),
          anchor: /-- fault: (\S+)$/.exec(line)?.[1],
        })),
      )
    })
}

/** A lock in a function of the database: the text up to the lock. */
export interface FunctionLock {
  name: string
  text: string
}

export async function locksOfFunctions(
  eye: Sql,
  names: readonly string[],
): Promise<FunctionLock[]> {
  const rows = await eye<FunctionLock>`
    select proname as name, pg_get_functiondef(oid) as text
    from pg_proc where proname = any(${names})`
  return rows.flatMap(({ name, text }) =>
    [...text.matchAll(new RegExp(lock, 'g'))].map((match) => ({
      name,
      text: text.slice(0, match.index + match[0].length),
    })),
  )
}

/** Whether this fault removes the lock at the end of the text. */
export function removesLock({ function: one }: Fault, { name, text }: FunctionLock): boolean {
  if (one?.name !== name) return false
  const faulty = text.replace(one.find, one.instead)
  return faulty !== text && !new RegExp(`${lock.source}$`).test(faulty)
}
