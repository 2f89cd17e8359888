import { createHash } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { browserPrefix } from '../../src/blobs/blobs.ts'
import type { ClaimedJob } from '../../src/erasure/job-leases.ts'
import { done, type Operations, recordPerson } from './operations.ts'
import { ada, check, isOneOf, plantDeleted, type Scenario, work } from './scenario.ts'
import type { Failure, World } from './world.ts'

/** The blob store refuses deletions of the first lane. */
const cannotDelete: Failure = { lane: '1 worker', at: /^blobs\.deletePrefix/ }

/** Workers, their leases, and what takes over from them. */
export const scenariosOfWorkers: Scenario[] = [
  {
    name: 'two workers: one of them gets the job',
    bounds: [0, 3],
    schedulesMinimum: [2, 47],
    plant: plantDeleted(),
    allowances: { areCountsExact: true },
    actors: (act) => ({ '1 worker': () => work(act), '2 worker': () => work(act) }),
    expect(answers, atRest) {
      const outcomes = [answers['1 worker'], answers['2 worker']].map(String).sort()
      check(outcomes.join() === 'completed,undefined', `they were ${outcomes.join()}`)
      check(atRest.jobs[0]?.attempts === 1, 'two attempts were counted')
    },
  },
  {
    name: 'two workers at two persons: their receipts form a chain',
    bounds: [0, 2],
    schedulesMinimum: [2, 1240],
    plant: async (act) => {
      for (const name of ['ada', 'grace']) {
        await recordPerson(act, name)
        await done(act.remove(name))
      }
    },
    allowances: { areCountsExact: true },
    actors: (act) => ({ '1 worker': () => work(act), '2 worker': () => work(act) }),
    expect(_answers, atRest) {
      const receipts = [...atRest.receipts].sort((a, b) => a.number - b.number)
      check(receipts.length === 2, `${receipts.length} receipts`)
      const [first, second] = receipts.map(({ jws }) => jws as string)
      const [, payload] = second!.split('.')
      const { previousReceiptHash } = JSON.parse(Buffer.from(payload!, 'base64url').toString())
      const hash = createHash('sha256').update(first!).digest('hex')
      check(previousReceiptHash === hash, 'a receipt does not contain the hash of the previous one')
    },
  },
  ...[false, true].map(
    (keepRecordings): Scenario => ({
      name: `a worker that loses its lease while it works ∥ the one that takes over (recordings ${keepRecordings ? 'kept' : 'deleted'})`,
      bounds: [0, 2],
      schedulesMinimum: [2, 143],
      plant: plantDeleted(keepRecordings, { browsers: keepRecordings ? 2 : 1 }),
      allowances: { areCountsExact: true },
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
    name: 'a lease expires ∥ the worker that holds it ∥ the reaper: completed, or lost once',
    bounds: [0, 2],
    schedulesMinimum: [6, 558],
    plant: plantDeleted(),
    allowances: { areCountsExact: true },
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
    name: 'renewals ∥ the clock ∥ the reaper: a lease is lost or renewed, never both',
    bounds: [1, 3],
    schedulesMinimum: [15, 25],
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
      name: `attempt ${attempt} fails ∥ its lease is reaped: it ends once`,
      bounds: [0, 3],
      schedulesMinimum: [2, 15],
      plant: plantFailing(attempt),
      failure: cannotDelete,
      allowances: { mayFail: true },
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
    name: 'an attempt fails ∥ another worker tries repeatedly: no attempt begins before its delay',
    bounds: [0, 2],
    schedulesMinimum: [2, 45],
    plant: plantDeleted(),
    failure: cannotDelete,
    actors: (act) => ({
      '1 worker': () => work(act),
      '2 other worker': async () => [
        await work(act),
        await act.forward(29),
        await work(act),
        await act.forward(1),
        await work(act),
      ],
    }),
  },
  {
    name: 'the fifth attempt fails ∥ DELETE: the same job, or a new one that is completed',
    bounds: [0, 3],
    schedulesMinimum: [2, 24],
    plant: plantFailing(5),
    failure: cannotDelete,
    allowances: { mayFail: true },
    actors: (act) => ({ '1 worker': () => work(act), '2 DELETE': () => act.remove('ada') }),
    expect({ '2 DELETE': answer }, atRest) {
      isOneOf(answer, 202)
      check(atRest.jobs.length <= 2, 'there is a third job')
      const last = atRest.jobs.find((job) => job.id === answer.json.job.id)
      check(
        atRest.jobs.length === 1 || last?.status === 'completed',
        'the new job did not complete',
      )
    },
  },
  {
    name: 'a graceful stop ∥ the reaper ∥ another worker: the attempt is handed back once',
    bounds: [0, 2],
    schedulesMinimum: [6, 1666],
    plant: plantDeleted(),
    allowances: { mayHandBack: true, areCountsExact: true },
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
      check(atRest.jobs[0]?.status === 'completed', 'the job is not completed')
    },
  },
  {
    name: 'the ledger is compared ∥ a worker at the same job: completed once',
    bounds: [0, 2],
    schedulesMinimum: [2, 690],
    plant: plantLedgerOnly,
    allowances: { mayHurry: true },
    actors: (act) => ({ '1 reapply': () => act.reapply(), '2 worker': () => work(act) }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'the ledger of a restored database is compared ∥ a worker dies after numbering an entry: no open entry counts as compared',
    bounds: [0, 2],
    schedulesMinimum: [2, 300],
    plant: async (act, world) => {
      const { job } = await plantLedgerOnly(act, world)
      await recordPerson(act, 'grace')
      await done(act.remove('grace'))
      // Ada's job is not due, so that the worker gets the other one.
      await world.query(
        `update deletion_jobs set next_attempt_at = next_attempt_at + interval '20 seconds'
         where id = '${job.id}'`,
      )
    },
    allowances: { mayHurry: true },
    // So that an entry is still open when all actors have ended.
    death: { lane: '2 worker', at: /^blobs\.put/, when: 'before' },
    actors: (act) => ({ '1 reapply': () => act.reapply(), '2 worker': () => work(act) }),
    expect(_answers, atRest) {
      check(ada(atRest).length === 0, 'the person exists')
    },
  },
  {
    name: 'an attempt after one that wrote the ledger ∥ the retention of a browser that it named: the entry keeps the browser',
    bounds: [0, 1],
    schedulesMinimum: [2, 60],
    plant: async (act, world) => {
      const planted = await plantLedgerOnly(act, world, { browsers: 2 })
      // As after a retention that was interrupted between the session and its browser.
      const { browserId, sessionId } = planted.places[1]!
      await world.query(`
        delete from chunks where session_id = '${sessionId}';
        delete from sessions where id = '${sessionId}';
        update browsers set to_check = true where id = '${browserId}'`)
      await rm(join(world.folder, browserPrefix(world.project.id, browserId)), { recursive: true })
      return planted
    },
    allowances: { mayExpire: true },
    actors: (act) => ({ '1 retention': () => act.expire(), '2 worker': () => work(act) }),
    expect(_answers, atRest, { job, places }) {
      check(ada(atRest).length === 0, 'the person exists')
      const key = [...atRest.files.keys()].find((one) => one.endsWith(`-${job.id}.jws`)) as string
      const [, payload] = String(atRest.files.get(key)).split('.')
      const entry = JSON.parse(Buffer.from(payload as string, 'base64url').toString())
      for (const { browserId } of places) {
        check(entry.browserIds.includes(browserId), 'the entry no longer names a browser')
      }
    },
  },
]

/** A job whose next attempt has this number. Its blobs cannot be deleted. */
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

/** An erasure that was completed, and then undone in the database as by a restored backup. */
async function plantLedgerOnly(act: Operations, world: World, size = {}) {
  const planted = await plantDeleted(false, size)(act)
  await world.keepPlanted()
  await act.attempt()
  const files = [...(await world.facts()).files]
  const [key, entry] = files.find(([one]) => one.endsWith(`-${planted.job.id}.jws`))!
  await world.replant()
  await mkdir(dirname(join(world.folder, key)), { recursive: true })
  await writeFile(join(world.folder, key), entry)
  return planted
}

const isLost = (error: Error) => {
  if (error.name !== 'LeaseLost') throw error
  return 'lost'
}
