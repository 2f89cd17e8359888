import type { Blobs } from '../../src/blobs/blobs.ts'
import type { Step } from '../../src/erasure/steps.ts'
import { fragment, type Sql } from '../../src/sql.ts'

/*
 * Faults in the product, one at a time: a lock, a condition or a statement is removed, or an order
 * swapped. They show that the exploration notices such mistakes.
 */

export interface Fault {
  /** In clauses of the product's SQL. */
  clauses?: Clause[]
  /** In the text of a database function, which a migration created. */
  function?: { name: string; find: string; instead: string }
  /** In the list or order of the steps of an erasure. */
  steps?: (steps: Step[]) => Step[]
  blobs?: (blobs: Blobs) => Blobs
}

/** The lines of a statement that end with `-- fault: NAME`. */
export interface Clause {
  name: string
  /** Only in the statement that has a line `-- statement: WITHIN`, if several share the clause. */
  within?: string
  /** Replaces the lines; if not given, they are removed. */
  instead?: string
}

/** The fault that is sown now, and which of its parts have changed something. */
export const sown: { fault: Fault | undefined; met: Set<unknown> } = {
  fault: undefined,
  met: new Set(),
}

/** Returns the parts of a fault that changed nothing: their code does not exist or never ran. */
export function unmet({ clauses = [], steps, blobs, function: one }: Fault): string[] {
  const parts: [part: unknown, message: string][] = [
    ...clauses.map((clause): [unknown, string] => [
      clause,
      `No statement that ran has the anchor "-- fault: ${clause.name}"${
        clause.within ? ` and the line "-- statement: ${clause.within}"` : ''
      }.`,
    ]),
    [one, `The function ${one?.name} does not contain "${one?.find}".`],
    [steps, 'The list of steps was not changed.'],
    [blobs, 'The blob store was not called.'],
  ]
  return parts.filter(([part]) => part && !sown.met.has(part)).map(([, message]) => message)
}

/** A statement with its fragments inserted, as one template. */
export interface Statement {
  text: string
  strings: TemplateStringsArray
  values: unknown[]
}

export function statementOf(strings: TemplateStringsArray, values: unknown[]): Statement {
  const flat = fragment(strings, ...values)
  const whole = flat.strings.reduce((text, part, index) => `${text}¤${index - 1}¤${part}`)
  let text = whole
  for (const clause of sown.fault?.clauses ?? []) {
    const faulty = withFault(text, clause)
    if (faulty !== text) sown.met.add(clause)
    text = faulty
  }
  return text === whole ? { text, strings, values } : templateOf(text, flat.values)
}

/** Returns the statement with the fault in this clause; unchanged if it has no such clause. */
export function withFault(text: string, { name, within, instead }: Clause): string {
  const lines = text.split('\n')
  if (within && !lines.some((line) => line.trim() === `-- statement: ${within}`)) return text
  const isMine = (line: string) => line.endsWith(`-- fault: ${name}`)
  const first = lines.findIndex(isMine)
  return lines
    .flatMap((line, index) => {
      if (!isMine(line)) return [line]
      return index === first && instead !== undefined ? [instead] : []
    })
    .join('\n')
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

/** Sows a fault. Returns a function that removes it. */
export async function sow(
  fault: Fault,
  eye: Sql,
  query: (text: string) => Promise<unknown>,
): Promise<() => Promise<void>> {
  Object.assign(sown, { fault, met: new Set() })
  const { function: one } = fault
  let original: string | undefined
  if (one) {
    const [row] = await eye<{ text: string }>`
      select pg_get_functiondef(oid) as text from pg_proc where proname = ${one.name}`
    const faulty = row!.text.replace(one.find, one.instead)
    if (faulty !== row!.text) sown.met.add(one)
    original = row!.text
    await query(faulty)
  }
  return async () => {
    sown.fault = undefined
    if (original !== undefined) await query(original)
  }
}
