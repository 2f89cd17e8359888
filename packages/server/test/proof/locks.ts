import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from '../../src/sql.ts'
import type { Fault } from './faults.ts'

/** A statement or a function of the database that takes a lock by name. */
export interface Lock {
  /** The file of the statement, or the name of the function. */
  place: string
  /** The lock clause and what stands before it, for a statement the whole. */
  text: string
}

const sources = join(import.meta.dirname, '../../src')
const folders = ['erasure', 'persons', 'recordings']
const functions = ['chunk_intend', 'person_write']
const clause = /\bfor (?:no key )?(?:update|share)\b/g

/** Found in the sources, so that a lock that is new is among them the day it is written. */
export async function locksOfTheProduct(eye: Sql): Promise<Lock[]> {
  const statements = folders.flatMap((folder) =>
    readdirSync(join(sources, folder))
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => {
        const templates = templatesOf(readFileSync(join(sources, folder, file), 'utf8'))
        return templates
          .filter((text) => locksIn(text) > 0)
          .map((text) => ({ place: `${folder}/${file}`, text }))
      }),
  )
  const rows = await eye<{ place: string; text: string }>`
    select proname as place, pg_get_functiondef(oid) as text
    from pg_proc where proname = any(${functions})`
  // Each lock of a function is one of its own: the function up to where it is taken.
  const inFunctions = rows.flatMap(({ place, text }) =>
    [...text.matchAll(clause)].map((match) => ({
      place,
      text: text.slice(0, match.index + match[0].length),
    })),
  )
  return [...statements, ...inFunctions]
}

/** Whether this fault takes the lock away; in a function, the last one of the text. */
export function takesLock({ statements = [], function: one }: Fault, lock: Lock): boolean {
  if (one?.name === lock.place) {
    const faulty = lock.text.replace(one.find, one.replace)
    return faulty !== lock.text && !/(?:update|share)$/.test(faulty)
  }
  return statements.some(
    ({ of, find, replace }) =>
      of.test(lock.text) && locksIn(lock.text.replace(find, replace)) < locksIn(lock.text),
  )
}

const locksIn = (text: string) => [...text.matchAll(clause)].length

/** The template literals of a source, with `¤0¤` for each of their expressions. */
function templatesOf(source: string): string[] {
  return source
    .split('`')
    .filter((_, index) => index % 2 === 1)
    .map((text) => {
      let plain = ''
      let depth = 0
      for (let index = 0; index < text.length; index++) {
        const isBegin = text.startsWith('${', index)
        if (depth === 0 && isBegin) plain += '¤0¤'
        if (isBegin || (depth > 0 && text[index] === '{')) depth++
        else if (depth > 0 && text[index] === '}') depth--
        else if (depth === 0) plain += text[index]
        if (isBegin) index++
      }
      return plain
    })
}
