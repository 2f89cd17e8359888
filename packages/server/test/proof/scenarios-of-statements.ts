import type { ClaimedJob } from '../../src/erasure/job-leases.ts'
import { done, type Place, recordPerson } from './operations.ts'
import {
  bystanders,
  check,
  isOneOf,
  isStoredIfAnswered,
  plantAda,
  plantDeleted,
  type Scenario,
} from './scenario.ts'

/**
 * What may happen between the reads and the writes of one statement, whose locks are shorter than a
 * step. So here each statement is split into several steps.
 */
export const scenariosOfStatements: Scenario[] = [
  {
    name: 'halfway through a start ∥ DELETE and worker: erased too, or 410',
    bounds: [0, 2],
    schedulesMinimum: [2, 40],
    isSplit: true,
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 start': () => act.start(places[0].browserId),
      '2 DELETE and worker': async () => [await act.remove('ada'), await act.attempt()],
    }),
    expect({ '1 start': answer }, atRest) {
      isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'halfway through a chunk ∥ DELETE and worker: erased too, or 410',
    bounds: [0, 2],
    schedulesMinimum: [2, 70],
    isSplit: true,
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 DELETE and worker': async () => [await act.remove('ada'), await act.attempt()],
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'halfway through chunks that share commits ∥ DELETE and worker: erased too, or 410',
    bounds: [0, 2],
    schedulesMinimum: [2, 69],
    isSplit: true,
    plant: (act) => recordPerson(act, 'ada', { browsers: 2 }),
    actors: (act, { places }) => ({
      '1 chunks': () => act.chunksTogether(places, 7),
      '2 DELETE and worker': async () => [await act.remove('ada'), await act.attempt()],
    }),
    expect({ '1 chunks': answers }, atRest) {
      for (const answer of answers) isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'halfway through chunks that share commits ∥ the same in another order: each is stored once',
    bounds: [0, 2],
    schedulesMinimum: [2, 24],
    isSplit: true,
    allowances: { mayPutLate: true },
    plant: (act) => recordPerson(act, 'ada', { browsers: 2 }),
    actors: (act, { places }) => ({
      '1 chunks': () => act.chunksTogether(places, 7),
      '2 chunks': () => act.chunksTogether(places.toReversed(), 7),
    }),
    expect(answers, atRest) {
      for (const name of ['1 chunks', '2 chunks']) {
        for (const answer of answers[name]) isOneOf(answer, 200, 409)
      }
      check(atRest.chunks.filter((one) => one.number === 7).length === 2, 'chunks are not unique')
    },
  },
  {
    name: 'halfway through a chunk ∥ the retention: stored before it is closed, or 410',
    bounds: [0, 2],
    schedulesMinimum: [2, 85],
    isSplit: true,
    allowances: { mayExpire: true },
    plant: async (act, world) => {
      const planted = await plantAda(act)
      await world.query(`update projects set retention_days = 7 where id = ${world.project.id}`)
      await act.forward(7.5 * 86_400)
      return planted
    },
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 retention': () => act.expire(),
    }),
    expect({ '1 chunk': answer }) {
      isOneOf(answer, 200, 410)
    },
  },
  {
    name: 'halfway through a confirmation ∥ the same chunk again: neither waits for the other',
    bounds: [1, 2],
    schedulesMinimum: [14, 23],
    isSplit: true,
    allowances: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 chunk': () => act.chunk(places[0], 7),
    }),
    expect(answers, atRest) {
      for (const name of ['1 chunk', '2 chunk']) isOneOf(answers[name], 200, 409)
      check(atRest.chunks.filter((one) => one.number === 7).length === 1, 'the chunk is not unique')
    },
  },
  {
    name: 'halfway through a confirmation ∥ the same chunk after its intent expired: one of them is stored',
    bounds: [1, 2],
    schedulesMinimum: [15, 60],
    isSplit: true,
    allowances: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 chunk': async () => {
        await act.forward(61)
        return act.chunk(places[0], 7)
      },
    }),
    expect(answers, atRest) {
      for (const name of ['1 chunk', '2 chunk']) isOneOf(answers[name], 200, 409, 410)
      isStoredIfAnswered(atRest, answers['1 chunk'], answers['2 chunk'])
    },
  },
  {
    name: 'halfway through a confirmation ∥ the collector: stored completely or not at all',
    bounds: [1, 2],
    schedulesMinimum: [9, 25],
    isSplit: true,
    allowances: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 collector': async () => [await act.forward(61), await act.collect()],
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200, 410)
      isStoredIfAnswered(atRest, answer)
    },
  },
  {
    name: 'halfway through a claim ∥ another one: one of them gets the job',
    bounds: [1, 2],
    schedulesMinimum: [4, 4],
    isSplit: true,
    plant: plantDeleted(),
    actors: (act) => ({ '1 worker': () => act.claim(), '2 worker': () => act.claim() }),
    expect(answers) {
      const claimed = [...answers['1 worker'], ...answers['2 worker']]
      check(claimed.length === 1, `${claimed.length} workers have the job`)
    },
  },
  {
    name: 'halfway through a renewal ∥ the reaper: a renewed lease is not lost',
    bounds: [1, 2],
    schedulesMinimum: [5, 6],
    isSplit: true,
    allowances: { mayStandStill: true },
    plant: async (act) => {
      await plantDeleted()(act)
      const [job] = await act.claim()
      await act.forward(29)
      return job
    },
    actors: (act, job: ClaimedJob) => ({
      '1 worker': () => act.renew(job).catch(String),
      '2 reaper': async () => [await act.forward(2), await act.reap()],
    }),
  },
  {
    name: 'halfway through a takeover ∥ an attempt that fails: the job stays taken over',
    bounds: [1, 2],
    schedulesMinimum: [9, 27],
    isSplit: true,
    allowances: { mayHurry: true },
    failure: { lane: '2 worker', at: /^blobs\.deletePrefix/ },
    plant: plantDeleted(),
    actors: (act, { job }) => ({
      '1 ledger': async () => {
        const taken = await act.takeOver(job.id)
        // Throws if the job belongs to another worker or to none.
        if (taken) await act.renew(taken)
      },
      '2 worker': () => act.attempt(),
    }),
  },
  {
    name: 'halfway through an identify ∥ another one: the browser is linked to one person',
    bounds: [1, 2],
    schedulesMinimum: [15, 95],
    isSplit: true,
    plant: (act) => done(act.start()),
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 identify': () => act.identify(browserId, 'grace'),
    }),
    expect(_answers, atRest, { browserId }) {
      const people = atRest.persons.filter((one) => one.external_id !== 'bystander')
      check(people.length === 1, `${people.length} persons`)
      const links = atRest.links.filter((one) => one.browser_id === browserId)
      check(links.length === 1 && links[0]?.person_id === people[0]?.id, 'the link is missing')
    },
  },
]
