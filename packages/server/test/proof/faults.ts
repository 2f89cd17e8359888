import type { Blobs } from '../../src/blobs/blobs.ts'
import type { Step } from '../../src/erasure/steps.ts'
import { fragment, type Sql } from '../../src/sql.ts'

/*
 * Faults sown into the product, one at a time: a lock clause, a condition, a fence or a statement
 * taken away, an order swapped. What they are for is to show that the suites would notice.
 */

export interface Fault {
  /** In the text of the product's statements; `$1` there is written as `¤0¤`. */
  statements?: Rewriting[]
  /** In the text of a function of the database. */
  function?: Omit<Rewriting, 'of'> & { name: string }
  /** In the order or the list of an erasure's steps. */
  steps?: (steps: Step[]) => Step[]
  blobs?: (blobs: Blobs) => Blobs
}

export interface Rewriting {
  /** Only in statements that have this in them. */
  of: RegExp
  find: RegExp
  replace: string
}

/** The fault that is sown at the moment, and which of its parts have changed something. */
export const sown: { fault: Fault | undefined; met: Set<unknown> } = {
  fault: undefined,
  met: new Set(),
}

/** What of a fault has nothing left to change, as the product has moved on: it shows nothing. */
export function unmet({ statements = [], steps, blobs, function: one }: Fault): unknown[] {
  return [...statements, steps, blobs, one].filter((part) => part && !sown.met.has(part))
}

/** A statement with its fragments put in, as one template. */
export interface Statement {
  text: string
  strings: TemplateStringsArray
  values: unknown[]
}

export function statementOf(strings: TemplateStringsArray, values: unknown[]): Statement {
  const flat = fragment(strings, ...values)
  const whole = flat.strings.reduce((text, part, index) => `${text}¤${index - 1}¤${part}`)
  let text = whole
  for (const rewriting of sown.fault?.statements ?? []) {
    if (!rewriting.of.test(whole)) continue
    const faulty = text.replace(rewriting.find, rewriting.replace)
    if (faulty !== text) sown.met.add(rewriting)
    text = faulty
  }
  return text === whole ? { text, strings, values } : templateOf(text, flat.values)
}

function templateOf(text: string, values: unknown[]): Statement {
  const parts = text.split(/¤(\d+)¤/)
  const strings = parts.filter((_, index) => index % 2 === 0)
  const kept = parts.filter((_, index) => index % 2 === 1).map((index) => values[Number(index)])
  const template = Object.assign(strings, { raw: strings }) as unknown as TemplateStringsArray
  return { text, strings: template, values: kept }
}

export function stepsOf(steps: Step[]): Step[] {
  const change = sown.fault?.steps
  if (!change) return steps
  const faulty = change(steps)
  const isChanged = faulty.some((step, index) => step !== steps[index])
  if (isChanged || faulty.length !== steps.length) sown.met.add(change)
  return faulty
}

export function blobsOf(blobs: Blobs): Blobs {
  const change = sown.fault?.blobs
  if (!change) return blobs
  sown.met.add(change)
  return change(blobs)
}

/** Sows a fault; answers how to take it out again. */
export async function sow(
  fault: Fault,
  eye: Sql,
  query: (text: string) => Promise<unknown>,
): Promise<() => Promise<void>> {
  Object.assign(sown, { fault, met: new Set() })
  const { function: rewriting } = fault
  let original: string | undefined
  if (rewriting) {
    const [row] = await eye<{ text: string }>`
      select pg_get_functiondef(oid) as text from pg_proc where proname = ${rewriting.name}`
    const faulty = row!.text.replace(rewriting.find, rewriting.replace)
    if (faulty !== row!.text) sown.met.add(rewriting)
    original = row!.text
    await query(faulty)
  }
  return async () => {
    sown.fault = undefined
    if (original !== undefined) await query(original)
  }
}
