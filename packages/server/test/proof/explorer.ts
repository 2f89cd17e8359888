import type { Scheduler } from './scheduler.ts'

/** A point of a schedule at which it could have continued differently. */
interface Choice {
  options: string[]
  /** The cost of each option: 1 if it interrupts a lane that could have continued. */
  costs: number[]
  chosen: number
  /** Preemptions before this choice. */
  spent: number
}

/** A part of the search: all schedules that begin like this one, up to `depth`. */
interface Branch {
  choices: Choice[]
  depth: number
}

/** A schedule that was run. */
interface Ran {
  choices: Choice[]
  /** One line per step, `lane: step`, to understand a fault. */
  trace: string[]
  /** Several lanes waited for locks at once, so the database chose which one continued. */
  hasDatabaseChosen: boolean
}

/** Chooses an option at this point of the schedule. */
type Choose = (place: number, options: string[], costs: number[]) => number

export interface Exploration {
  schedules: number
  steps: number
  /** Steps that had to wait for the lock of another lane. */
  blocked: number
  /** Schedules run again because the database chose another of the waiting lanes. */
  repeated: number
}

export interface ExploreOptions {
  /** The most preemptions a schedule may have. */
  bound: number
  /** Starts a schedule from the same initial state. */
  begin(): Promise<Scheduler>
  /** Lets time pass for sleeping lanes. Called when no lane can take a step. */
  passTime(): Promise<void>
  /** Called after each step. */
  observe?(trace: readonly string[]): Promise<void>
  /** Checks the result of a schedule. */
  end(scheduler: Scheduler): Promise<void>
}

/** A schedule with more steps is an endless loop. */
const stepsMaximum = 1_000

/** How often a schedule is started again until the database makes the same choice. */
const repetitionsMaximum = 200

/** A schedule took other steps when it was repeated, so the exploration is not valid. */
export class Diverged extends Error {
  override readonly name = 'Diverged'
}

/** A broken rule, with the schedule that breaks it. */
export class Caught extends Error {
  override readonly name = 'Caught'
  readonly trace: readonly string[]

  constructor(cause: unknown, trace: readonly string[], schedule: number) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(`${reason}\nin schedule ${schedule}:\n  ${trace.join('\n  ')}`, { cause })
    this.trace = trace
  }
}

/**
 * Runs every schedule with at most `bound` preemptions, depth first. A switch from a lane that has
 * ended, waits for a lock or sleeps is free, so these are always tried. Throws `Caught` for the
 * first schedule in which `observe` or `end` throws.
 *
 * If several lanes wait for a lock, the database decides which gets it, and may decide differently
 * the next time. Such a schedule is checked like any other, and the schedules that begin with it
 * are explored too; then the planned one is tried again.
 */
export async function explore(options: ExploreOptions): Promise<Exploration> {
  const found: Exploration = { schedules: 0, steps: 0, blocked: 0, repeated: 0 }
  const branches: Branch[] = []
  const known = new Set<string>()

  async function run(planned: Choice[]): Promise<Choice[]> {
    for (let repetition = 0; repetition < repetitionsMaximum; repetition++) {
      let divergedAt: number | undefined
      const ran = await runSchedule(options, found, (place, names) => {
        const plan = divergedAt === undefined ? planned[place] : undefined
        if (!plan) return 0
        if (plan.options.join() === names.join()) return plan.chosen
        divergedAt = place
        return 0
      })
      const { choices, trace, hasDatabaseChosen } = ran
      if (divergedAt === undefined) return choices
      if (!hasDatabaseChosen) {
        throw new Diverged(`A schedule took other steps in a repetition:\n  ${trace.join('\n  ')}`)
      }
      const key = keyOf(choices.slice(0, divergedAt + 1))
      if (known.has(key)) found.repeated++
      else branches.push({ choices, depth: divergedAt })
      known.add(key)
    }
    throw new Diverged(`A schedule cannot be repeated: ${keyOf(planned)}`)
  }

  branches.push({ choices: await run([]), depth: 0 })
  for (let branch = branches.pop(); branch; branch = branches.pop()) {
    const { depth } = branch
    let { choices } = branch
    for (;;) {
      const planned = nextPlan(choices, depth, options.bound)
      if (!planned) break
      choices = await run(planned)
    }
  }
  return found
}

const keyOf = (choices: Choice[]) =>
  choices.map(({ options, chosen }) => `${options.join('|')}=${chosen}`).join(' ')

async function runSchedule(
  { begin, observe, passTime, end }: ExploreOptions,
  found: Exploration,
  choose: Choose,
): Promise<Ran> {
  const scheduler = await begin()
  const ran: Ran = { choices: [], trace: [], hasDatabaseChosen: false }
  const { choices, trace } = ran
  const number = ++found.schedules
  let last = ''
  let spent = 0
  try {
    for (;;) {
      await scheduler.settle()
      const waiting = scheduler.lanes.filter((lane) => lane.isBlocked).length
      found.blocked += waiting
      ran.hasDatabaseChosen ||= waiting > 1
      if (trace.length > 0) await observe?.(trace)
      const enabled = scheduler.enabled()
      if (enabled.length === 0) {
        if (!scheduler.isAsleep()) break
        await passTime()
        scheduler.wake()
        trace.push('time passes')
        continue
      }
      if (trace.length > stepsMaximum) throw new Error('A schedule does not end.')
      const names = enabled.map((lane) => lane.name)
      const canContinue = names.includes(last)
      const options = canContinue ? [last, ...names.filter((name) => name !== last)] : names
      const costs = options.map((_, index) => (canContinue && index > 0 ? 1 : 0))
      const choice = { options, costs, chosen: choose(choices.length, options, costs), spent }
      choices.push(choice)
      spent += costs[choice.chosen] as number
      last = options[choice.chosen] as string
      const lane = enabled.find(({ name }) => name === last) as (typeof enabled)[number]
      trace.push(`${last}: ${scheduler.step(lane)}`)
    }
    const stuck = scheduler.lanes.filter((lane) => !lane.hasEnded).map((lane) => lane.name)
    if (stuck.length > 0) throw new Error(`${stuck.join(', ')} never end their wait`)
    await end(scheduler)
  } catch (error) {
    await scheduler.abandon()
    throw new Caught(error, trace, number)
  }
  found.steps += trace.length
  return ran
}

/** Returns the next schedule of the branch; undefined after the last. */
function nextPlan(choices: Choice[], from: number, bound: number): Choice[] | undefined {
  for (let depth = choices.length - 1; depth >= from; depth--) {
    const choice = choices[depth] as Choice
    for (let chosen = choice.chosen + 1; chosen < choice.options.length; chosen++) {
      if (choice.spent + (choice.costs[chosen] as number) > bound) continue
      return [...choices.slice(0, depth), { ...choice, chosen }]
    }
  }
  return undefined
}
