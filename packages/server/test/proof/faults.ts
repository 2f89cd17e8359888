import type { Blobs } from '../../src/blobs/blobs.ts'
import type { Step } from '../../src/erasure/steps.ts'
import { fragment, type Sql } from '../../src/sql.ts'

/*
 * Faults sown into the product, one at a time: a lock clause, a condition, a fence or a statement
 * taken away, an order swapped. What they are for is to show that the suites would notice.
 */

export interface Fault {
  /** In the text of the product's statements; `$1` there is written as `¤0¤`. */
  statement?: Rewriting
  /** In the text of a function of the database. */
  function?: Rewriting & { name: string }
  /** In the order or the list of an erasure's steps. */
  steps?: (steps: Step[]) => Step[]
  blobs?: (blobs: Blobs) => Blobs
}

export interface Rewriting {
  /** Only in statements that have this in them too. */
  of?: RegExp
  find: RegExp
  replace: string
}

/** The fault that is sown at the moment, and how often it was met. */
export const sown: { fault: Fault | undefined; met: number } = { fault: undefined, met: 0 }

/** A statement with its fragments put in, as one template. */
export interface Statement {
  text: string
  strings: TemplateStringsArray
  values: unknown[]
}

export function statementOf(strings: TemplateStringsArray, values: unknown[]): Statement {
  const flat = fragment(strings, ...values)
  const whole = {
    text: flat.strings.reduce((text, part, index) => `${text}¤${index - 1}¤${part}`),
    strings,
    values,
  }
  const rewriting = sown.fault?.statement
  if (!rewriting) return whole
  if (rewriting.of && !rewriting.of.test(whole.text)) return whole
  const text = whole.text.replace(rewriting.find, rewriting.replace)
  if (text === whole.text) return whole
  sown.met++
  return templateOf(text, flat.values)
}

function templateOf(text: string, values: unknown[]): Statement {
  const parts = text.split(/¤(\d+)¤/)
  const strings = parts.filter((_, index) => index % 2 === 0)
  const kept = parts.filter((_, index) => index % 2 === 1).map((index) => values[Number(index)])
  const template = Object.assign(strings, { raw: strings }) as unknown as TemplateStringsArray
  return { text, strings: template, values: kept }
}

/** Replaces a function of the database by one with the fault; answers how to bring it back. */
export async function sowInFunction(
  sql: Sql,
  query: (text: string) => Promise<unknown>,
  { name, find, replace }: Rewriting & { name: string },
): Promise<() => Promise<void>> {
  const [row] = await sql<{ text: string }>`
    select pg_get_functiondef(oid) as text from pg_proc where proname = ${name}`
  const text = row!.text
  const faulty = text.replace(find, replace)
  if (faulty === text) throw new Error(`${name} has nothing like ${find} any more.`)
  await query(faulty)
  return async () => {
    await query(text)
  }
}
