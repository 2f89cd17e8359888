import { Crash } from '../erasure-faults.ts'
import { type Exploration, explore } from './explorer.ts'
import { type Fault, sow } from './faults.ts'
import { type Allowances, checkAlways, checkAtRest } from './invariants.ts'
import { operationsOf, recordPerson } from './operations.ts'
import type { Scenario } from './scenario.ts'
import { type Scheduler, startLanes } from './scheduler.ts'
import { treeOf } from './tree.ts'
import type { World } from './world.ts'

/**
 * Explores a scenario: runs every schedule of its actors with at most `bound` preemptions, each
 * from the same state, and checks all rules after each. Throws `Caught` for the first schedule that
 * breaks a rule. A fault is sown after planting.
 */
export async function exploreScenario(
  world: World,
  scenario: Scenario,
  bound: number,
  fault: Fault = {},
): Promise<Exploration> {
  const act = operationsOf(world)
  world.isBucket = scenario.isBucket ?? false
  await world.clear()
  const planted = await scenario.plant(act, world)
  // The bystanders, who must not change, come last: the scenario may let time pass before.
  await recordPerson(act, 'bystander', { sessions: 2 })
  await recordPerson(operationsOf(world, world.otherProject), 'bystander')
  await world.keepPlanted()
  const before = await world.facts()

  async function begin(): Promise<Scheduler> {
    await world.replant()
    world.death = scenario.death && { ...scenario.death }
    world.failure = scenario.failure
    world.violation = undefined
    world.watch = (what, key) => checkOrder(world, what, key, scenario.allowances)
    const actors = Object.entries(scenario.actors(act, planted, world))
    const pids = await world.pids(actors.length)
    const breakpoints = scenario.isSplit ? await world.setBreakpoints(pids) : undefined
    return startLanes(
      world.eye,
      actors.map(([name, run], index) => ({ name, run, pid: pids[index] as number })),
      breakpoints,
    )
  }

  async function end(scheduler: Scheduler): Promise<void> {
    if (scenario.isSplit) await world.removeBreakpoints()
    const allowances = scenario.allowances ?? {}
    if (world.violation) throw world.violation
    const answers = answersOf(scheduler, scenario)
    checkAlways(before, await world.facts(), allowances)
    Object.assign(world, { death: undefined, failure: undefined })
    await bringToRest(world, scenario)
    if (world.violation) throw world.violation
    const atRest = await world.facts()
    checkAlways(before, atRest, allowances)
    checkAtRest(atRest, allowances)
    scenario.expect?.(answers, atRest, planted)
  }

  const takeOut = await sow(fault, world.eye, world.query)
  try {
    return await explore({
      bound,
      begin,
      end,
      observe: async (trace) => {
        if (world.violation) throw world.violation
        await checkInventory(world, scenario, trace.at(-1) as string)
      },
      passTime: () => passTime(world),
    })
  } finally {
    await takeOut()
    Object.assign(world, { death: undefined, failure: undefined, watch: undefined })
  }
}

/** Lets a minute pass. Live workers renew their leases. */
async function passTime(world: World): Promise<void> {
  await world.query(`
    update deletion_jobs set lease_until = app_now() + interval '91 seconds'
    where lease_until > app_now()`)
  await world.forward(61)
}

/** Returns the responses of the actors. Throws what an actor threw, and for server errors. */
function answersOf(scheduler: Scheduler, { death }: Scenario): Record<string, unknown> {
  const answers: Record<string, unknown> = {}
  for (const [name, { value, error }] of scheduler.outcomes) {
    const isDead = death?.lane === name
    if (error !== undefined && !(isDead && error instanceof Crash)) throw error
    for (const one of [value].flat()) {
      const { status, json } = (one ?? {}) as { status?: number; json?: { error?: unknown } }
      if (typeof status === 'number' && status >= 500 && !isDead) {
        throw new Error(`${name} got ${status} ${JSON.stringify(json?.error)}`)
      }
    }
    answers[name] = value
  }
  return answers
}

/** Without faults, lets time pass until there is nothing left to do. */
async function bringToRest(world: World, { allowances }: Scenario): Promise<void> {
  const act = operationsOf(world)
  const isOpen = async () =>
    (await world.eye`select from deletion_jobs where status in ('pending', 'running')`).length > 0
  for (let round = 0; round < 7 && (await isOpen()); round++) {
    await world.forward(61)
    await act.reap()
    await world.forward(241)
    for (let attempts = 0; (await act.attempt()) !== undefined; attempts++) {
      if (attempts > 20) throw new Error('attempts do not end')
    }
  }
  await world.forward(allowances?.mayPack ? 86_461 : 61)
  await act.collect()
  if (allowances?.mayExpire) await act.expire()
}

/** Checks the order before a step: keys are destroyed before blobs, and the person goes last. */
async function checkOrder(
  { eye, folder }: World,
  what: string,
  key: string,
  { mayExpirePersons }: Allowances = {},
): Promise<void> {
  const [, browserId] = /^blobs\/\d+\/([^/]+)\/$/.exec(key) ?? []
  if (what === 'blobs.deletePrefix' && browserId) {
    const keys = await eye`select from browser_keys where browser_id = ${browserId}`
    if (keys.length > 0) throw new Error('blobs are deleted before their key')
    const open = await eye`select from browsers where id = ${browserId} and not retired`
    if (open.length > 0) throw new Error('blobs of a browser that is not retired are deleted')
  }
  if (/^delete from persons/.test(what) && !mayExpirePersons) {
    const jobs = await eye<{ id: string; sessions: number }>`
      select j.id,
        (select count(*)::integer
         from person_browsers l
         join sessions s on s.browser_id = l.browser_id
         where l.person_id = j.person_id and not j.keep_recordings) as sessions
      from deletion_jobs j
      where j.status = 'running'`
    if (jobs.length === 0) throw new Error('a person without a running job is deleted')
    // One of the jobs belongs to the person.
    const entries = [...treeOf(folder).files.keys()].filter((one) => one.startsWith('ledger/'))
    const known = jobs.filter(({ id }) => entries.some((one) => one.endsWith(`-${id}.jws`)))
    if (known.length === 0) throw new Error('a person is deleted who is not in the ledger')
    if (known.every(({ sessions }) => sessions > 0))
      throw new Error('a person is deleted before its sessions')
  }
}

/** Checks after a step that no blob has lost its row. */
async function checkInventory(
  world: World,
  { allowances = {} }: Scenario,
  step: string,
): Promise<void> {
  if (allowances.mayLeaveSealed || allowances.mayPutLate) return
  if (!/: (?:commit|delete from (?:chunks|sessions)|blobs\.put|with part as)/.test(step)) return
  const rows = await world.eye<{ key: string }>`select blob_key as key from chunks`
  const known = new Set(rows.map(({ key }) => key))
  for (const key of world.blobKeys()) {
    if (!known.has(key)) throw new Error('a blob has no row')
  }
}
