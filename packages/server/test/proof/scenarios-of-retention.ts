import { done, type Place, recordPerson } from './operations.ts'
import { ada, check, isOneOf, plantAda, type Scenario, work } from './scenario.ts'

/** What the retention deletes while erasures run. */
export const scenariosOfRetention: Scenario[] = [
  {
    name: 'retention ∥ DELETE ∥ worker at the same session: deleted in any order',
    bounds: [0, 2],
    schedulesMinimum: [6, 1870],
    plant: async (act) => {
      const planted = await plantAda(act)
      await act.forward(31 * 86_400)
      return planted
    },
    allowances: { mayExpire: true },
    actors: (act) => ({
      '1 retention': () => act.expire(),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'retention ∥ DELETE ∥ worker at a browser without recordings: its link is removed once',
    bounds: [0, 2],
    schedulesMinimum: [6, 500],
    plant: async (act, world) => {
      const { places } = await recordPerson(act, 'ada', { chunks: 0 })
      // As after a retention that was interrupted between the session and its browser.
      const { browserId, sessionId } = places[0]!
      await world.query(`
        delete from sessions where id = '${sessionId}';
        update browsers set to_check = true where id = '${browserId}'`)
    },
    allowances: { mayExpire: true },
    actors: (act) => ({
      '1 retention': () => act.expire(),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'a withdrawal ∥ DELETE ∥ worker: the recordings are deleted in any order',
    bounds: [0, 2],
    schedulesMinimum: [6, 6],
    plant: async (act, world) => {
      await world.query(
        `update projects set allows_withdrawal = true where id = ${world.project.id}`,
      )
      return plantAda(act)
    },
    allowances: { mayExpire: true },
    actors: (act, { places }) => ({
      '1 withdrawal': () => act.withdraw(places[0]!.browserId),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect(answers, atRest, { places }) {
      isOneOf(answers['1 withdrawal'], 200)
      check(ada(atRest).length === 0, 'the person exists')
      const isThere = atRest.sessions.some(({ id }) => id === places[0]!.sessionId)
      check(!isThere, 'a recording exists')
    },
  },
  {
    name: 'a withdrawal ∥ chunk ∥ identify: nothing is recorded for the browser after it',
    bounds: [0, 1],
    schedulesMinimum: [6, 88],
    plant: async (act, world) => {
      await world.query(
        `update projects set allows_withdrawal = true where id = ${world.project.id}`,
      )
      return done(act.start())
    },
    allowances: { mayExpire: true },
    actors: (act, place: Place) => ({
      '1 withdrawal': () => act.withdraw(place.browserId),
      '2 chunk': () => act.chunk(place, 0),
      '3 identify': () => act.identify(place.browserId, 'ada'),
    }),
    expect(answers) {
      isOneOf(answers['1 withdrawal'], 200)
      isOneOf(answers['2 chunk'], 200, 410)
      isOneOf(answers['3 identify'], 200, 410)
    },
  },
  {
    name: 'retention ∥ start and identify of a long unused browser: it stays if it is used again',
    bounds: [0, 2],
    schedulesMinimum: [6, 1900],
    plant: async (act) => {
      const started = await done(act.start())
      await act.forward(31 * 86_400)
      return started
    },
    allowances: { mayExpire: true },
    actors: (act, { browserId }: Place) => ({
      '1 retention': () => act.expire(),
      '2 start': () => act.start(browserId),
      '3 identify': () => act.identify(browserId, 'ada'),
    }),
    expect(answers, atRest, { browserId }) {
      isOneOf(answers['2 start'], 200, 410)
      isOneOf(answers['3 identify'], 200, 410)
      const isThere = atRest.browsers.some((one) => one.id === browserId)
      // An identify alone does not keep a browser: its link ends with the last recording.
      const isUsed = answers['2 start'].status === 200
      check(isThere || !isUsed, 'a browser that may record is gone')
      const started = answers['2 start'].json.sessionId
      check(
        started === undefined || atRest.sessions.some((one) => one.id === started),
        'a session that was started is gone',
      )
    },
  },
  {
    name: 'retention ∥ identify and POST of a person that identify created: what a response confirmed exists',
    bounds: [0, 1],
    schedulesMinimum: [6, 160],
    plant: async (act, world) => {
      // As if identify had created her, and her last recording had been deleted long ago.
      await done(act.post('ada'))
      await world.query(`
        update projects set identified_days = 1 where id = ${world.project.id};
        insert into identified_persons (project_id, person_id, idle_since)
        select project_id, id, '2000-01-01' from persons`)
      return done(act.start())
    },
    allowances: { mayExpire: true, mayExpirePersons: true },
    actors: (act, { browserId }: Place) => ({
      '1 retention': () => act.expire(),
      '2 identify': () => act.identify(browserId, 'ada'),
      '3 POST': () => act.post('ada', { plan: 'pro' }),
    }),
    expect(answers, atRest, { browserId }) {
      isOneOf(answers['2 identify'], 200)
      isOneOf(answers['3 POST'], 200, 201)
      const [person, ...others] = ada(atRest)
      check(others.length === 0 && person?.properties.plan === 'pro', 'what was written is gone')
      const link = atRest.links.find((one) => one.browser_id === browserId)
      check(link?.person_id === person?.id, 'the browser is not linked')
    },
  },
  ...[false, true].map(
    (isBucket): Scenario => ({
      name: `retention ∥ a late chunk of an old session, in a ${isBucket ? 'bucket' : 'folder'}: stored, or 410`,
      bounds: [0, 3],
      schedulesMinimum: [2, 50],
      plant: async (act, world) => {
        const planted = await plantAda(act)
        // A session takes chunks for eight days; this project keeps recordings for a week.
        await world.query(`update projects set retention_days = 7 where id = ${world.project.id}`)
        await act.forward(7.5 * 86_400)
        return planted
      },
      isBucket,
      allowances: { mayExpire: true },
      actors: (act, { places }) => ({
        '1 retention': () => act.expire(),
        '2 chunk': () => act.chunk(places[0], 7),
      }),
      expect({ '2 chunk': answer }) {
        isOneOf(answer, 200, 410)
      },
    }),
  ),
]
