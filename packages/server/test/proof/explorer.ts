import type { Scheduler } from './scheduler.ts'

/** One place of a schedule in which it could have gone on differently. */
interface Choice {
  options: string[]
  /** What an option costs: 1 where it interrupts a lane that could have gone on. */
  costs: number[]
  chosen: number
  /** Preemptions before this choice. */
  spent: number
}

/** A part of the search: all schedules that begin as this one does, up to `depth`. */
interface Branch {
  choices: Choice[]
  depth: number
}

/** A schedule as it was run. */
interface Ran {
  choices: Choice[]
  /** To understand a fault: `lane: step` a line. */
  trace: string[]
  /** Several lanes waited for locks at once, so who went on was the database's choice. */
  hasDatabaseChosen: boolean
}

/** Which of the options is taken at this place of the schedule. */
type Choose = (place: number, options: string[], costs: number[]) => number

export interface Exploration {
  schedules: number
  steps: number
  /** Steps that had to wait for the lock of another lane. */
  blocked: number
  /** Of the schedules those run once more, since the database chose otherwise between waiters. */
  repeated: number
}

export interface ExploreOptions {
  /** The preemptions a schedule may have at most. */
  bound: number
  /** Starts a schedule again from the same state. */
  begin(): Promise<Scheduler>
  /** Time passes for all who sleep; called when nobody can do anything else. */
  passTime(): Promise<void>
  /** After each step. */
  observe?(trace: readonly string[]): Promise<void>
  /** Looks at what a schedule has done. */
  end(scheduler: Scheduler): Promise<void>
}

/** Steps of one schedule; more are a loop that nothing ends. */
const stepsMaximum = 1_000

/** How often a schedule is begun in which the database has to choose as it did before. */
const repetitionsMaximum = 200

/** A schedule that was run again went another way: what is explored is not what was meant. */
export class Diverged extends Error {
  override readonly name = 'Diverged'
}

/** What was found out, with the schedule that shows it. */
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
 * Runs every schedule with at most `bound` preemptions, depth first. A switch from a lane that
 * ended, waits for a lock or sleeps is free, so all of those are always tried. Throws `Caught` for
 * the first schedule in which `observe` or `end` throws.
 *
 * Where several lanes wait for one lock, the database decides who has it next, and may decide
 * otherwise the next time. Such a schedule is looked at like any other, and the schedules that
 * begin with it are explored as well; then what had been planned is tried again.
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
        throw new Diverged(`A schedule went another way:\n  ${trace.join('\n  ')}`)
      }
      const key = keyOf(choices.slice(0, divergedAt + 1))
      if (known.has(key)) found.repeated++
      else branches.push({ choices, depth: divergedAt })
      known.add(key)
    }
    throw new Diverged(`A schedule cannot be had again: ${keyOf(planned)}`)
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
      const goesOn = names.includes(last)
      const options = goesOn ? [last, ...names.filter((name) => name !== last)] : names
      const costs = options.map((_, index) => (goesOn && index > 0 ? 1 : 0))
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

/** The next schedule in the order of the search; undefined after the last of the branch. */
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
