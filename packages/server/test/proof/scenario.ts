import type { Allowances } from './invariants.ts'
import { type Answer, done, type Operations, recordPerson } from './operations.ts'
import type { Death, Facts, Failure, World } from './world.ts'

/** Operations that meet, and what must come of it whichever way they meet. */
export interface Scenario {
  name: string
  /** Preemptions of a schedule in a normal run and in a deep one. */
  bounds: [normal: number, deep: number]
  /** Fewer schedules than this, with these bounds, mean that some were not tried. */
  schedulesMinimum: [normal: number, deep: number]
  /** What is there before; made once, through the product. */
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
  /** Statements stop in their midst, so that others may come between what one sees and does. */
  isSplit?: boolean
  /** Checks the responses, and what is there at the end, when everything has ended. */
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
  expect?(answers: Record<string, any>, atRest: Facts, planted: any): void
}

export function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

export const isOneOf = (answer: Answer, ...statuses: number[]) =>
  check(statuses.includes(answer.status), `it answered ${answer.status}`)

/** Chunk 7 is there, once, where any of those who sent it were told so, and not where none was. */
export function isStoredIfAnswered(atRest: Facts, ...answers: Answer[]): void {
  const there = atRest.chunks.filter((one) => one.number === 7).length
  const isStored = answers.some(({ status }) => status === 200)
  check(there === (isStored ? 1 : 0), 'what was answered is not so')
}

/** What those have who are always there, in both projects. */
export const bystanders = { sessions: 3, links: 2 }

export const ada = (facts: Facts) => facts.persons.filter((one) => one.external_id === 'ada')

export const plantAda = (act: Operations) => recordPerson(act, 'ada')

/** A person whose deletion has been asked for. */
export const plantDeleted =
  (keepRecordings = false, size = {}) =>
  async (act: Operations) => {
    const recorded = await recordPerson(act, 'ada', size)
    const { job } = await done(act.remove('ada', keepRecordings))
    return { ...recorded, job }
  }

export const work = (act: Operations) => act.attempt()
