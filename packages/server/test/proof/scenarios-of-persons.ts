import { done, type Place, recordPerson } from './operations.ts'
import { ada, check, isOneOf, plantAda, plantDeleted, type Scenario, work } from './scenario.ts'

/** Requests about persons, and of a browser that names one. */
export const scenariosOfPersons: Scenario[] = [
  {
    name: 'DELETE ∥ DELETE, same flag: one job for both',
    bounds: [1, 3],
    schedulesMinimum: [6, 6],
    plant: plantAda,
    actors: (act) => ({ '1 DELETE': () => act.remove('ada'), '2 DELETE': () => act.remove('ada') }),
    expect(answers, atRest) {
      const jobs = [answers['1 DELETE'], answers['2 DELETE']].map(({ json }) => json.job?.id)
      check(jobs[0] !== undefined && jobs[0] === jobs[1], 'two DELETEs have two jobs')
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'DELETE ∥ DELETE, different flag: one 202, one 409',
    bounds: [0, 3],
    schedulesMinimum: [2, 6],
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 DELETE': () => act.remove('ada', true),
    }),
    expect(answers) {
      const statuses = [answers['1 DELETE'].status, answers['2 DELETE'].status].sort()
      check(statuses.join() === '202,409', `the statuses are ${statuses.join()}`)
    },
  },
  {
    name: 'DELETE ∥ DELETE ∥ worker: one job, and 404 after its completion',
    bounds: [0, 2],
    schedulesMinimum: [6, 435],
    plant: plantAda,
    allowances: { areCountsExact: true },
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(answers, atRest) {
      for (const name of ['1 DELETE', '2 DELETE']) isOneOf(answers[name], 202, 404)
      check(atRest.jobs.length === 1, 'there is not exactly one job')
    },
  },
  {
    name: 'POSTs in one statement ∥ DELETE of one of their persons ∥ worker: each gets its own response',
    bounds: [0, 1],
    schedulesMinimum: [6, 60],
    plant: async (act) => [await recordPerson(act, 'grace'), await recordPerson(act, 'ada')],
    allowances: { areCountsExact: true },
    actors: (act) => ({
      '1 POSTs': () => act.postTogether(['first', 'ada', 'grace', 'alan'], { n: 1 }),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 POSTs': [first, posted, merged, alan] }, atRest) {
      for (const answer of [first, alan]) isOneOf(answer, 201)
      isOneOf(merged, 200)
      isOneOf(posted, 200, 201, 409)
      check((posted.status === 201) === (ada(atRest).length === 1), 'the response was wrong')
    },
  },
  {
    name: 'POST ∥ DELETE: merged and then erased, or 409',
    bounds: [1, 3],
    schedulesMinimum: [4, 4],
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada'),
      '2 POST': () => act.post('ada', { plan: 'pro' }),
    }),
    expect(answers, atRest) {
      isOneOf(answers['2 POST'], 200, 409)
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'PATCH ∥ DELETE ∥ POST: merged and then erased, or 409',
    bounds: [0, 3],
    schedulesMinimum: [6, 20],
    plant: plantAda,
    actors: (act) => ({
      '1 DELETE': () => act.remove('ada', true),
      '2 PATCH': () => act.patch('ada', { plan: 'pro', email: 'ada@example.com' }),
      '3 POST': () => act.post('ada', { name: 'Ada Lovelace' }),
    }),
    expect(answers, atRest) {
      for (const name of ['2 PATCH', '3 POST']) isOneOf(answers[name], 200, 409)
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'POST ∥ worker: 409 before the completion, 201 with a new person after it',
    bounds: [0, 3],
    schedulesMinimum: [2, 71],
    plant: plantDeleted(),
    allowances: { areCountsExact: true },
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
      check((person !== undefined) === (answer.status === 201), 'the response was wrong')
      if (answer.status === 409) return
      check(JSON.stringify(person?.properties) === '{"plan":"new"}', 'properties were resurrected')
      check(JSON.stringify(seen.json.person.properties) === '{"plan":"new"}', 'GET differs')
      check(
        !atRest.links.some((link) => link.person_id === person?.id),
        'the old browser is linked',
      )
    },
  },
  {
    name: 'DELETE ∥ worker: the same job, or 404',
    bounds: [0, 3],
    schedulesMinimum: [2, 104],
    plant: plantDeleted(),
    actors: (act) => ({ '1 worker': () => work(act), '2 DELETE': () => act.remove('ada') }),
    expect({ '2 DELETE': answer }, atRest) {
      isOneOf(answer, 202, 404)
      check(atRest.jobs.length === 1, 'a second job was created')
    },
  },
  {
    name: 'identify ∥ DELETE: linked and then erased, or ignored',
    bounds: [1, 3],
    schedulesMinimum: [10, 23],
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
      check(ada(atRest).length === 0, 'the person exists')
      const isLinked = atRest.links.some((link) => link.browser_id === browserId)
      check(!isLinked, 'the browser is linked to a person')
    },
  },
  {
    name: 'identify ∥ DELETE ∥ worker: the person is erased; a new one is created only afterwards',
    bounds: [0, 2],
    schedulesMinimum: [6, 426],
    plant: async (act) => {
      await recordPerson(act, 'ada')
      return done(act.start())
    },
    allowances: { areCountsExact: true },
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 identify': answer }, atRest, { browserId }) {
      isOneOf(answer, 200, 410)
      const [person] = ada(atRest)
      const link = atRest.links.find((one) => one.browser_id === browserId)
      check(link?.person_id === person?.id, 'the new person is not linked to its browser')
      check(!person || person.properties.name === undefined, 'the old person still exists')
    },
  },
  {
    name: 'a stale identify ∥ worker: 410, and the person is not created again',
    bounds: [0, 3],
    schedulesMinimum: [2, 24],
    plant: plantDeleted(),
    actors: (act, { places }) => ({
      '1 worker': () => work(act),
      '2 identify': () => act.identify(places[0].browserId, 'ada'),
    }),
    expect({ '2 identify': answer }, atRest) {
      isOneOf(answer, 410)
      check(ada(atRest).length === 0, 'the person was created again')
    },
  },
  {
    name: 'two identifies of one browser: it is linked to one person, and the other is not created',
    bounds: [1, 3],
    schedulesMinimum: [11, 57],
    plant: (act) => done(act.start()),
    actors: (act, { browserId }: Place) => ({
      '1 identify': () => act.identify(browserId, 'ada'),
      '2 identify': () => act.identify(browserId, 'grace'),
    }),
    expect(answers, atRest, { browserId }) {
      const next = [answers['1 identify'], answers['2 identify']].map(({ json }) => json.next)
      check(next.sort().join() === 'continue,new_browser', `the responses are ${next.join()}`)
      const people = atRest.persons.filter((one) => one.external_id !== 'bystander')
      check(people.length === 1, `${people.length} persons`)
      const [link] = atRest.links.filter((one) => one.browser_id === browserId)
      check(link?.person_id === people[0]?.id, 'the browser is not linked to the person')
    },
  },
  {
    name: 'two identifies of two browsers as one new person ∥ DELETE: one person, or none',
    bounds: [0, 2],
    schedulesMinimum: [6, 484],
    plant: async (act) => [await done(act.start()), await done(act.start())],
    actors: (act, [one, two]: Place[]) => ({
      '1 identify': () => act.identify(one!.browserId, 'ada'),
      '2 identify': () => act.identify(two!.browserId, 'ada'),
      '3 DELETE': () => act.remove('ada'),
    }),
    expect({ '3 DELETE': answer }, atRest) {
      isOneOf(answer, 202, 404)
      check(ada(atRest).length <= 1, 'the person exists twice')
    },
  },
]
