import type { Allowances } from './invariants.ts'
import { type Answer, done, type Operations, recordPerson } from './operations.ts'
import type { Death, Facts, Failure, World } from './world.ts'

/** Operations that run at the same time, and what their outcome must be in any order. */
export interface Scenario {
  name: string
  /** Preemptions of a schedule in a normal run and in a deep one. */
  bounds: [normal: number, deep: number]
  /** The fewest schedules with these bounds. If there are fewer, some were not tried. */
  schedulesMinimum: [normal: number, deep: number]
  /** Creates the initial data, once, through the product. */
  // biome-ignore lint/suspicious/noExplicitAny: each scenario knows its own
  plant(act: Operations, world: World): Promise<any>
  /** Lanes are numbered: `1 DELETE`, `2 worker`. */
  actors(
    act: Operations,
    // biome-ignore lint/suspicious/noExplicitAny: what `plant` returned
    planted: any,
    world: World,
  ): Record<string, () => Promise<unknown>>
  allowances?: Allowances
  death?: Death
  failure?: Failure
  isBucket?: boolean
  /** Statements pause between their reads and writes, so that others can run there. */
  isSplit?: boolean
  /** Checks the responses and the final data, after everything has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
  expect?(answers: Record<string, any>, atRest: Facts, planted: any): void
}

export function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

export const isOneOf = (answer: Answer, ...statuses: number[]) =>
  check(statuses.includes(answer.status), `the status is ${answer.status}`)

/** Chunk 7 exists, once, exactly if a response said that it is stored. */
export function isStoredIfAnswered(atRest: Facts, ...answers: Answer[]): void {
  const there = atRest.chunks.filter((one) => one.number === 7).length
  const isStored = answers.some(({ status }) => status === 200)
  check(there === (isStored ? 1 : 0), 'the response was wrong')
}

/** What the bystanders of both projects have in total. */
export const bystanders = { sessions: 3, links: 2 }

export const ada = (facts: Facts) => facts.persons.filter((one) => one.external_id === 'ada')

export const plantAda = (act: Operations) => recordPerson(act, 'ada')

/** A person whose deletion has been requested. */
export const plantDeleted =
  (keepRecordings = false, size = {}) =>
  async (act: Operations) => {
    const recorded = await recordPerson(act, 'ada', size)
    const { job } = await done(act.remove('ada', keepRecordings))
    return { ...recorded, job }
  }

export const work = (act: Operations) => act.attempt()
