import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { done, type Operations, type Recorded, recordPerson } from './operations.ts'
import { ada, check, isOneOf, type Scenario } from './scenario.ts'
import type { Facts, World } from './world.ts'

interface Deleted extends Recorded {
  jobId: string
}

/** The deletions of Ada and Grace have been requested. */
const plantBoth =
  (keepRecordings: { ada: boolean; grace: boolean }) =>
  async (act: Operations, world: World): Promise<{ ada: Deleted; grace: Deleted }> => {
    // Otherwise it depends on chance which of the first two entries creates the folder.
    await mkdir(join(world.folder, 'ledger', '000000000'), { recursive: true })
    const one = async (name: 'ada' | 'grace') => {
      const recorded = await recordPerson(act, name)
      const { job } = await done(act.remove(name, keepRecordings[name]))
      return { ...recorded, jobId: job.id as string }
    }
    const first = await one('ada')
    // Otherwise it depends on chance which job is due first, and so how many schedules there are.
    await act.forward(1)
    return { ada: first, grace: await one('grace') }
  }

const bothDeleted = plantBoth({ ada: false, grace: false })

const attemptsOf = (facts: Facts) => facts.jobs.map(({ attempts }) => attempts).join()

/** One attempt at several persons: each ends as it would alone, whatever happens to another. */
export const scenariosOfPersonsTogether: Scenario[] = [
  {
    name: 'persons together ∥ another worker: each is erased once, in one attempt',
    bounds: [0, 1],
    schedulesMinimum: [2, 68],
    plant: bothDeleted,
    allowances: { areCountsExact: true },
    actors: (act) => ({
      '1 worker': () => act.attemptTogether(),
      '2 worker': () => act.attemptTogether(),
    }),
    expect(_answers, atRest) {
      check(attemptsOf(atRest) === '1,1', `attempts were ${attemptsOf(atRest)}`)
    },
  },
  {
    name: 'persons together, one with the recordings kept: each as requested',
    bounds: [0, 1],
    schedulesMinimum: [2, 79],
    plant: plantBoth({ ada: false, grace: true }),
    allowances: { areCountsExact: true },
    actors: (act) => ({
      '1 worker': async () => [await act.attemptTogether(), await act.attemptTogether()],
      '2 worker': () => act.attemptTogether(),
    }),
    expect(_answers, atRest) {
      check(attemptsOf(atRest) === '1,1', `attempts were ${attemptsOf(atRest)}`)
    },
  },
  {
    name: 'persons together ∥ the clock ∥ the reaper: completed, or lost once',
    bounds: [0, 2],
    schedulesMinimum: [6, 1000],
    plant: bothDeleted,
    allowances: { areCountsExact: true },
    actors: (act) => ({
      '1 worker': () => act.attemptTogether(),
      '2 clock': () => act.forward(31),
      '3 reaper': () => act.reap(),
    }),
  },
  {
    name: 'persons together ∥ one of them is taken over: each is then erased alone',
    bounds: [0, 2],
    schedulesMinimum: [2, 35],
    plant: bothDeleted,
    allowances: { mayHandBack: true, mayHurry: true, areCountsExact: true },
    actors: (act, { grace }: { grace: Deleted }) => ({
      '1 worker': () => act.attemptTogether(),
      '2 ledger': () => act.takeOver(grace.jobId),
    }),
  },
  {
    name: 'persons together ∥ POST of one and DELETE of the other: before or after the completion',
    bounds: [0, 1],
    schedulesMinimum: [6, 221],
    plant: bothDeleted,
    actors: (act) => ({
      '1 worker': () => act.attemptTogether(),
      '2 POST': () => act.post('ada', { name: 'Later' }),
      '3 DELETE': () => act.remove('grace'),
    }),
    expect({ '2 POST': posted, '3 DELETE': removed }, atRest) {
      isOneOf(posted, 201, 409)
      isOneOf(removed, 202, 404)
      check((posted.status === 201) === (ada(atRest).length === 1), 'the response was wrong')
    },
  },
  {
    name: 'persons together, blobs of one cannot be deleted ∥ DELETE of both: the other is completed',
    bounds: [0, 2],
    schedulesMinimum: [2, 130],
    plant: bothDeleted,
    failure: { lane: '1 worker', at: /^blobs\.deletePrefix/ },
    allowances: { mayHandBack: true, areCountsExact: true },
    actors: (act) => ({
      '1 worker': async () => [await act.attemptTogether(), await act.attemptTogether()],
      '2 DELETE': async () => [await act.remove('ada'), await act.remove('grace')],
    }),
    expect({ '2 DELETE': answers }) {
      for (const answer of answers) isOneOf(answer, 202, 404)
    },
  },
]
