import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClaimedJob } from '../../src/erasure/attempts.ts'
import type { Terms } from './invariants.ts'
import { type Answer, done, type Operations, type Place, recordPerson } from './operations.ts'
import type { Outcome } from './scheduler.ts'
import type { Death, Facts, Failure, World } from './world.ts'

/** Operations that meet, and what must come of it whichever way they meet. */
export interface Scenario {
  name: string
  /** Interruptions of a schedule in a normal run and in a deep one. */
  bounds: [normal: number, deep: number]
  /** Fewer schedules than this, in a normal run, mean that some were not tried. */
  schedulesMinimum: number
  /** What is there before; made once, through the product. */
  // biome-ignore lint/suspicious/noExplicitAny: each scenario knows its own
  plant(act: Operations, world: World): Promise<any>
  /** Lanes are numbered: `1 DELETE`, `2 worker`. */
  actors(
    act: Operations,
    // biome-ignore lint/suspicious/noExplicitAny: what `plant` answered
    planted: any,
    world: World,
  ): Record<string, () => Promise<unknown>>
  terms?: Terms
  death?: Death
  failure?: Failure
  isBucket?: boolean
  /** Looks at the answers, and at what is there at the end, when all is at rest. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  expect?(answers: Record<string, any>, atRest: Facts, planted: any): void
}

export type Answers = Map<string, Outcome>

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

const isOneOf = (answer: Answer, ...statuses: number[]) =>
  check(statuses.includes(answer.status), `it answered ${answer.status}`)

/** What those have who are always there, in both projects. */
const bystanders = { sessions: 3, links: 2 }

const ada = (facts: Facts) => facts.persons.filter((one) => one.external_id === 'ada')

const plantAda = (act: Operations) => recordPerson(act, 'ada')

/** A person whose deletion has been asked for. */
const plantDeleted =
  (keepRecordings = false, size = {}) =>
  async (act: Operations) => {
    const recorded = await recordPerson(act, 'ada', size)
    const { job } = await done(act.remove('ada', keepRecordings))
    return { ...recorded, job }
  }

const work = (act: Operations) => act.attempt()

/** The store of the first lane refuses to delete. */
const cannotDelete: Failure = { lane: '1 worker', at: /^blobs\.deletePrefix/ }

export const scenarios: Scenario[] = [
  {
    name: 'DELETE ∥ DELETE, same flag: one job for both',
    bounds: [2, 3],
    schedulesMinimum: 10,
    plant: plantAda,
    actors: (act) => ({ '1 DELETE': () => act.remove('ada'), '2 DELETE': () => act.remove('ada') }),
    expect(answers, atRest) {
      const jobs = [answers['1 DELETE'], answers['2 DELETE']].map(({ json }) => json.job?.id)
      check(jobs[0] !== undefined && jobs[0] === jobs[1], 'two DELETEs have two jobs')
      check(ada(atRest).length === 0, 'the person is there')
    },
  },
  {
    name: 'DELETE ∥ DELETE, other flag: one 202, one 409',
    bounds: [2, 3],
    schedulesMinimum: 10,
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 DELETE': () => act.remove('ada', true),
    }),
    expect(answers) {
      const statuses = [answers['1 DELETE'].status, answers['2 DELETE'].status].sort()
      check(statuses.join() === '202,409', `they answered ${statuses.join()}`)
    },
  },
  {
    name: 'DELETE ∥ DELETE ∥ worker: two jobs only if the first was over, the second then 404',
    bounds: [1, 2],
    schedulesMinimum: 40,
    plant: plantAda,
    terms: { areCountsExact: true },
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(answers, atRest) {
      for (const name of ['1 DELETE', '2 DELETE']) isOneOf(answers[name], 202, 404)
      check(atRest.jobs.length === 1, 'there are two jobs')
    },
  },
  {
    name: 'POST ∥ DELETE: merged and then erased, or 409',
    bounds: [2, 3],
    schedulesMinimum: 6,
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 POST': () => act.post('ada', { plan: 'pro' }),
    }),
    expect(answers, atRest) {
      isOneOf(answers['2 POST'], 200, 409)
      check(ada(atRest).length === 0, 'the person is there')
    },
  },
  {
    name: 'PATCH ∥ DELETE ∥ POST: merged and then erased, or 409',
    bounds: [2, 3],
    schedulesMinimum: 20,
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada', true),
      '2 PATCH': () => act.patch('ada', { plan: 'pro', email: 'ada@example.com' }),
      '3 POST': () => act.post('ada', { name: 'Ada Lovelace' }),
    }),
    expect(answers, atRest) {
      for (const name of ['2 PATCH', '3 POST']) isOneOf(answers[name], 200, 409)
      check(ada(atRest).length === 0, 'the person is there')
    },
  },
  {
    name: 'POST ∥ worker: 409 before the end, 201 after it, with a person that shares nothing',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: plantDeleted(),
    terms: { areCountsExact: true },
    actors: (act) => ({
      '1 worker': () => work(act),
      '2 POST': async () => {
        const answer = await act.post('ada', { plan: 'new' })
        return { answer, seen: await act.get('ada') }
      },
    }),
    expect({ '2 POST': { answer, seen } }, atRest) {
      isOneOf(answer, 201, 409)
      const [person] = ada(atRest)
      check((person !== undefined) === (answer.status === 201), 'a person that nobody made')
      if (answer.status === 409) return
      check(JSON.stringify(person?.properties) === '{"plan":"new"}', 'properties were resurrected')
      check(JSON.stringify(seen.json.person.properties) === '{"plan":"new"}', 'GET shows others')
      check(!atRest.links.some((link) => link.person_id === person?.id), 'it has the old browser')
    },
  },
  {
    name: 'DELETE ∥ worker in its last steps: the same job, or 404',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: plantDeleted(),
    actors: (act) => ({ '1 worker': () => work(act), '2 DELETE': () => act.remove('ada') }),
    expect({ '2 DELETE': answer }, atRest) {
      isOneOf(answer, 202, 404)
      check(atRest.jobs.length === 1, 'a second job was made')
    },
  },
  {
    name: 'identify ∥ DELETE: linked and then erased, or ignored',
    bounds: [2, 3],
    schedulesMinimum: 20,
    plant: async (act) => {
      await recordPerson(act, 'ada')
      const other: Place = await done(act.start())
      await done(act.chunk(other, 0))
      return other
    },
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 DELETE': () => act.remove('ada'),
    }),
    expect({ '1 identify': answer }, atRest, { browserId }) {
      isOneOf(answer, 200)
      check(ada(atRest).length === 0, 'the person is there')
      const isLinked = atRest.links.some((link) => link.browser_id === browserId)
      check(!isLinked, 'the browser is somebody’s')
    },
  },
  {
    name: 'identify ∥ DELETE ∥ worker: the person is erased; a new one is made only afterwards',
    bounds: [1, 2],
    schedulesMinimum: 60,
    plant: async (act) => {
      await recordPerson(act, 'ada')
      return done(act.start())
    },
    terms: { areCountsExact: true },
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 identify': answer }, atRest, { browserId }) {
      isOneOf(answer, 200, 410)
      const [person] = ada(atRest)
      const link = atRest.links.find((one) => one.browser_id === browserId)
      check(link?.person_id === person?.id, 'a person without the browser it was made for')
      check(!person || person.properties.name === undefined, 'the old person is there')
    },
  },
  {
    name: 'a stale identify ∥ worker: 410, and nobody comes back',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: plantDeleted(),
    actors: (act, { places }) => ({
      '1 worker': () => work(act),
      '2 identify': () => act.identify(places[0].browserId, 'ada'),
    }),
    expect({ '2 identify': answer }, atRest) {
      isOneOf(answer, 410)
      check(ada(atRest).length === 0, 'the person came back')
    },
  },
  {
    name: 'two identifies of one browser: it is one person’s, the other makes nobody',
    bounds: [2, 3],
    schedulesMinimum: 20,
    plant: (act) => done(act.start()),
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 identify': () => act.identify(browserId, 'grace'),
    }),
    expect(answers, atRest, { browserId }) {
      const next = [answers['1 identify'], answers['2 identify']].map(({ json }) => json.next)
      check(next.sort().join() === 'continue,new_browser', `they answered ${next.join()}`)
      const people = atRest.persons.filter((one) => one.external_id !== 'bystander')
      check(people.length === 1, `${people.length} persons`)
      const [link] = atRest.links.filter((one) => one.browser_id === browserId)
      check(link?.person_id === people[0]?.id, 'the browser is nobody’s')
    },
  },
  {
    name: 'two identifies of two browsers as one new person ∥ DELETE: all of it, or nothing',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: async (act) => [await done(act.start()), await done(act.start())],
    actors: (act, [one, two]: Place[]) => ({
      '1 identify': () => act.identify(one!.browserId, 'ada'),
      '2 identify': () => act.identify(two!.browserId, 'ada'),
      '3 DELETE': () => act.remove('ada'),
    }),
    expect({ '3 DELETE': answer }, atRest) {
      isOneOf(answer, 202, 404)
      check(ada(atRest).length <= 1, 'the person is there twice')
    },
  },
  {
    name: 'chunk ∥ DELETE ∥ worker: in the erased set, or 410',
    bounds: [1, 2],
    schedulesMinimum: 80,
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'chunk ∥ DELETE with the recordings kept ∥ worker: stored whole, or 410',
    bounds: [1, 2],
    schedulesMinimum: 60,
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 DELETE': () => act.remove('ada', true),
      '3 worker': () => work(act),
    }),
    expect({ '1 chunk': answer }, atRest, { places }) {
      isOneOf(answer, 200, 410)
      const mine = atRest.chunks.filter((one) => one.session_id === places[0].sessionId)
      check(mine.length === (answer.status === 200 ? 2 : 1), `${mine.length} chunks are there`)
      check(atRest.links.length === bystanders.links, 'the recordings lead to somebody')
    },
  },
  ...[false, true].map(
    (isBucket): Scenario => ({
      name: `an upload whose intent runs out ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}: never confirmed afterwards`,
      bounds: [1, 2],
      schedulesMinimum: 60,
      isBucket,
      plant: plantAda,
      actors: (act, { places }) => ({
        '1 chunk': () => act.chunk(places[0], 7),
        '2 DELETE and worker': async () => {
          const answer = await act.remove('ada')
          await act.forward(61)
          return [answer, await act.attempt()]
        },
      }),
      expect({ '1 chunk': answer }, atRest) {
        isOneOf(answer, 200, 410)
        check(atRest.sessions.length === bystanders.sessions, 'a session is left')
      },
    }),
  ),
  {
    name: 'an upload whose intent runs out ∥ the collector: stored or gone, never half of it',
    bounds: [2, 3],
    schedulesMinimum: 18,
    terms: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 collector': async () => [await act.forward(61), await act.collect()],
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200, 410)
      const isThere = atRest.chunks.some((one) => one.number === 7)
      check(isThere === (answer.status === 200), 'what was answered is not so')
    },
  },
  {
    name: 'an expired upload repeated ∥ the first one ∥ the collector: one chunk at most',
    bounds: [1, 2],
    schedulesMinimum: 40,
    terms: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 chunk': async () => {
        await act.forward(61)
        return act.chunk(places[0], 7)
      },
      '3 collector': () => act.collect(),
    }),
    expect(answers, atRest) {
      isOneOf(answers['1 chunk'], 200, 410, 409)
      isOneOf(answers['2 chunk'], 200, 410, 409)
      const there = atRest.chunks.filter((one) => one.number === 7).length
      const was200 = [answers['1 chunk'], answers['2 chunk']].some(({ status }) => status === 200)
      check(there === (was200 ? 1 : 0), 'what was answered is not so')
    },
  },
  ...(['before', 'after'] as const).flatMap((when) =>
    [false, true].map(
      (isBucket): Scenario => ({
        name: `an uploader dies ${when} its put ∥ DELETE ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}`,
        bounds: [when === 'after' ? 0 : 1, 2],
        schedulesMinimum: when === 'after' ? 6 : 40,
        isBucket,
        death: { lane: '1 chunk', at: /^blobs\.put/, when },
        terms: { mayLeaveSealed: isBucket },
        plant: plantAda,
        actors: (act, { places }) => ({
          '1 chunk': () => act.chunk(places[0], 7),
          '2 DELETE': () => act.remove('ada'),
          '3 worker': () => work(act),
        }),
        expect(_answers, atRest) {
          check(atRest.sessions.length === bystanders.sessions, 'a session is left')
        },
      }),
    ),
  ),
  {
    name: 'start ∥ DELETE ∥ worker: in the erased set, or 410',
    bounds: [1, 2],
    schedulesMinimum: 60,
    plant: plantAda,
    terms: { areCountsExact: true },
    actors: (act, { places }) => ({
      '1 start': () => act.start(places[0].browserId),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 start': answer }, atRest) {
      isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'start and chunk of a browser ∥ DELETE of two browsers with the recordings kept',
    bounds: [1, 2],
    schedulesMinimum: 12,
    plant: (act) => recordPerson(act, 'ada', { browsers: 2 }),
    actors: (act, { places }) => ({
      '1 start': async () => {
        const answer = await act.start(places[1].browserId)
        return [answer, answer.status === 200 ? await act.chunk(answer.json, 0) : undefined]
      },
      '2 DELETE': () => act.remove('ada', true),
    }),
    expect({ '1 start': [start, chunk] }, atRest) {
      isOneOf(start, 200, 410)
      if (chunk) isOneOf(chunk, 200, 410)
      const mine = atRest.sessions.length - bystanders.sessions
      check(mine === (start.status === 200 ? 3 : 2), `${mine} sessions are there`)
    },
  },
  {
    name: 'two workers: one of them has the job',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: plantDeleted(),
    terms: { areCountsExact: true },
    actors: (act) => ({ '1 worker': () => work(act), '2 worker': () => work(act) }),
    expect(answers, atRest) {
      const outcomes = [answers['1 worker'], answers['2 worker']].map(String).sort()
      check(outcomes.join() === 'completed,undefined', `they were ${outcomes.join()}`)
      check(atRest.jobs[0]?.attempts === 1, 'two attempts were counted')
    },
  },
  ...[false, true].map(
    (keepRecordings): Scenario => ({
      name: `a worker that loses its lease while it works ∥ the one that takes over (recordings ${keepRecordings ? 'kept' : 'deleted'})`,
      bounds: [1, 2],
      schedulesMinimum: keepRecordings ? 20 : 40,
      plant: plantDeleted(keepRecordings, { browsers: keepRecordings ? 2 : 1 }),
      terms: { areCountsExact: true },
      actors: (act) => ({
        '1 worker': () => work(act),
        '2 other worker': async () => {
          const lost = [await act.forward(31), await act.reap()]
          return [lost, await act.forward(31), await act.attempt()]
        },
      }),
      expect({ '1 worker': outcome }) {
        check([undefined, 'completed', 'lost'].includes(outcome), `it was ${outcome}`)
      },
    }),
  ),
  {
    name: 'a lease runs out ∥ the worker that has it ∥ the reaper: completed, or lost once',
    bounds: [1, 2],
    schedulesMinimum: 60,
    plant: plantDeleted(),
    terms: { areCountsExact: true },
    actors: (act) => ({
      '1 worker': () => work(act),
      '2 clock': () => act.forward(31),
      '3 reaper': () => act.reap(),
    }),
    expect({ '1 worker': outcome }) {
      check([undefined, 'completed', 'lost'].includes(outcome), `it was ${outcome}`)
    },
  },
  {
    name: 'renewals ∥ the clock ∥ the reaper: a lease is lost or it stands, never both',
    bounds: [2, 3],
    schedulesMinimum: 30,
    plant: async (act) => {
      await plantDeleted()(act)
      const [job] = await act.claim()
      return job
    },
    actors: (act, job: ClaimedJob) => ({
      '1 worker': async () => [
        await act.renew(job).catch(isLost),
        await act.renew(job).catch(isLost),
      ],
      '2 clock': async () => [await act.forward(29), await act.forward(2)],
      '3 reaper': () => act.reap(),
    }),
    expect({ '1 worker': renewals, '3 reaper': { lost } }) {
      check(lost === 0 || lost === 1, 'an attempt was lost twice')
      check(!(renewals[0] === 'lost' && renewals[1] !== 'lost'), 'a lost lease was renewed')
    },
  },
  ...[1, 5].map(
    (attempt): Scenario => ({
      name: `attempt ${attempt} fails ∥ its lease is reaped: it failed once`,
      bounds: [1, 2],
      schedulesMinimum: 8,
      plant: plantFailing(attempt),
      failure: cannotDelete,
      terms: { mayFail: true },
      actors: (act) => ({
        '1 worker': () => work(act),
        '2 reaper': async () => [await act.forward(31), await act.reap()],
      }),
      expect({ '1 worker': outcome }) {
        check(['failed', 'lost'].includes(outcome), `it was ${outcome}`)
      },
    }),
  ),
  {
    name: 'the fifth attempt fails ∥ DELETE: the same job, or a new one that ends it',
    bounds: [2, 3],
    schedulesMinimum: 29,
    plant: plantFailing(5),
    failure: cannotDelete,
    terms: { mayFail: true },
    actors: (act) => ({ '1 worker': () => work(act), '2 DELETE': () => act.remove('ada') }),
    expect({ '2 DELETE': answer }, atRest) {
      isOneOf(answer, 202)
      check(atRest.jobs.length <= 2, 'a third job was made')
      const last = atRest.jobs.find((job) => job.id === answer.json.job.id)
      check(atRest.jobs.length === 1 || last?.status === 'completed', 'the new job has not ended')
    },
  },
  {
    name: 'a graceful stop ∥ the reaper ∥ another worker: the attempt is given back once',
    bounds: [1, 2],
    schedulesMinimum: 20,
    plant: plantDeleted(),
    terms: { mayHandBack: true, areCountsExact: true },
    actors: (act) => {
      const stopping = new AbortController()
      return {
        '1 worker': () => act.attempt(stopping.signal),
        '2 stop': async () => {
          await act.forward(1)
          const { Stopping } = await import('../../src/erasure/attempt.ts')
          stopping.abort(new Stopping())
          await act.forward(30)
          return act.reap()
        },
        '3 worker': () => act.attempt(),
      }
    },
    expect(_answers, atRest) {
      check(atRest.jobs[0]?.status === 'completed', 'it is not completed')
    },
  },
  {
    name: 'the ledger is compared ∥ a worker at the same job: completed once',
    bounds: [1, 2],
    schedulesMinimum: 30,
    plant: plantLedgerOnly,
    terms: { mayHurry: true },
    actors: (act) => ({ '1 reapply': () => act.reapply(), '2 worker': () => work(act) }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person is there')
    },
  },
  {
    name: 'retention ∥ DELETE ∥ worker at the same session: gone, whoever was first',
    bounds: [0, 1],
    schedulesMinimum: 6,
    plant: async (act) => {
      const planted = await plantAda(act)
      await act.forward(31 * 86_400)
      return planted
    },
    terms: { mayExpire: true },
    actors: (act) => ({
      '1 retention': () => act.expire(),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person is there')
    },
  },
  {
    name: 'retention ∥ start and identify of a browser that nobody has used for long',
    bounds: [0, 2],
    schedulesMinimum: 6,
    plant: async (act) => {
      const started = await done(act.start())
      await act.forward(31 * 86_400)
      return started
    },
    terms: { mayExpire: true },
    actors: (act, { browserId }: Place) => ({
      '1 retention': () => act.expire(),
      '2 start': () => act.start(browserId),
      '3 identify': () => act.identify(browserId, 'ada'),
    }),
    expect(answers, atRest, { browserId }) {
      isOneOf(answers['2 start'], 200, 410)
      isOneOf(answers['3 identify'], 200, 410)
      const isThere = atRest.browsers.some((one) => one.id === browserId)
      const isUsed = [answers['2 start'], answers['3 identify']].some((one) => one.status === 200)
      check(isThere || !isUsed, 'a browser that was told to go on is gone')
      const started = answers['2 start'].json.sessionId
      check(
        started === undefined || atRest.sessions.some((one) => one.id === started),
        'a session that was given out is gone',
      )
    },
  },
  {
    name: 'retention ∥ a chunk of a session of the last hour before it is too old',
    bounds: [1, 2],
    schedulesMinimum: 20,
    plant: async (act, world) => {
      const planted = await plantAda(act)
      // A session takes chunks for eight days; this project keeps recordings for a week.
      await world.query(`update projects set retention_days = 7 where id = ${world.project.id}`)
      await act.forward(7.5 * 86_400)
      return planted
    },
    terms: { mayExpire: true },
    actors: (act, { places }) => ({
      '1 retention': () => act.expire(),
      '2 chunk': () => act.chunk(places[0], 7),
    }),
    expect({ '2 chunk': answer }) {
      isOneOf(answer, 200, 410)
    },
  },
]

/** A job whose next attempt, of this number, will find blobs that cannot be deleted. */
function plantFailing(attempt: number) {
  return async (act: Operations, world: World) => {
    const planted = await plantDeleted()(act)
    await world.query(
      `update deletion_jobs set status = 'running', attempts = ${attempt - 1}, started_at = app_now()
       where ${attempt} > 1`,
    )
    await world.query(
      `insert into deletion_attempts (project_id, job_id, number, started_at, ended_at, outcome, error_code)
       select project_id, id, n, app_now() - (6 - n) * interval '10 minutes',
         app_now() - (6 - n) * interval '10 minutes', 'failed', 'test'
       from deletion_jobs, generate_series(1, ${attempt - 1}) as n`,
    )
    return planted
  }
}

/** An erasure that was completed, and then forgotten by the database as after a restored backup. */
async function plantLedgerOnly(act: Operations, world: World) {
  const planted = await plantDeleted()(act)
  await world.keepPlanted()
  await act.attempt()
  const key = `ledger/${world.project.id}/${planted.job.id}.json`
  const entry = (await world.facts()).files.get(key)!
  await world.replant()
  await mkdir(dirname(join(world.folder, key)), { recursive: true })
  await writeFile(join(world.folder, key), entry)
  return planted
}

const isLost = (error: Error) => {
  if (error.name !== 'LeaseLost') throw error
  return 'lost'
}
