import type { Scheduler } from './scheduler.ts'

/** One place of a schedule in which it could have gone on differently. */
interface Choice {
  options: string[]
  /** What an option costs: 1 where it interrupts a lane that could have gone on. */
  costs: number[]
  chosen: number
  /** Interruptions before this choice. */
  spent: number
}

/** A schedule as it was run, for whoever has to understand a fault: `lane: step` a line. */
export interface Run {
  trace: string[]
  /** Digests what was done in which order. */
  key: string
}

export interface Exploration {
  schedules: number
  steps: number
  /** Steps that had to wait for the lock of another lane. */
  blocked: number
  /** Different orders of steps among the schedules; more than one means that something raced. */
  orders: number
}

export interface ExploreOptions {
  /** The interruptions a schedule may have at most. */
  bound: number
  /** Begins a schedule anew from the same state. */
  begin(): Promise<Scheduler>
  /** Time passes for all who sleep; called when nobody can do anything else. */
  passTime(): Promise<void>
  /** After each step. */
  observe?(trace: readonly string[]): Promise<void>
  /** Looks at what a schedule has done. */
  end(scheduler: Scheduler, run: Run): Promise<void>
}

/** Steps of one schedule; more are a loop that nothing ends. */
const stepsMaximum = 1_000

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
 * Runs every schedule with at most `bound` interruptions, depth first. A switch from a lane that
 * ended, waits for a lock or sleeps is free, so all of those are always tried. Throws `Caught` for
 * the first schedule in which `observe` or `end` throws.
 */
export async function explore(options: ExploreOptions): Promise<Exploration> {
  const found: Exploration = { schedules: 0, steps: 0, blocked: 0, orders: 0 }
  const orders = new Set<string>()
  let prefix: Choice[] | undefined = []
  while (prefix) {
    found.schedules++
    const { choices, trace, blocked } = await runSchedule(options, prefix, found.schedules)
    found.steps += trace.length
    found.blocked += blocked
    orders.add(trace.join('\n'))
    prefix = nextPrefix(choices, options.bound)
  }
  found.orders = orders.size
  return found
}

async function runSchedule(options: ExploreOptions, prefix: Choice[], number: number) {
  const scheduler = await options.begin()
  const choices: Choice[] = []
  const trace: string[] = []
  let last = ''
  let blocked = 0
  let spent = 0
  try {
    for (;;) {
      await scheduler.settle()
      blocked += scheduler.lanes.filter((lane) => lane.isBlocked).length
      if (trace.length > 0) await options.observe?.(trace)
      const enabled = scheduler.enabled()
      if (enabled.length === 0) {
        if (!scheduler.isAsleep()) break
        await options.passTime()
        scheduler.wake()
        trace.push('time passes')
        continue
      }
      if (trace.length > stepsMaximum) throw new Error('A schedule does not end.')
      const names = enabled.map((lane) => lane.name)
      const goesOn = names.includes(last)
      const ordered = goesOn ? [last, ...names.filter((name) => name !== last)] : names
      const choice = chooseAs(prefix[choices.length], ordered, goesOn, spent)
      choices.push(choice)
      spent += choice.costs[choice.chosen] as number
      last = choice.options[choice.chosen] as string
      const lane = enabled.find(({ name }) => name === last) as (typeof enabled)[number]
      trace.push(`${last}: ${scheduler.step(lane)}`)
    }
    const stuck = scheduler.lanes.filter((lane) => !lane.hasEnded).map((lane) => lane.name)
    if (stuck.length > 0) throw new Error(`${stuck.join(', ')} wait for ever`)
    await options.end(scheduler, { trace, key: choices.map(({ chosen }) => chosen).join('') })
  } catch (error) {
    if (error instanceof Diverged) throw error
    throw new Caught(error, trace, number)
  }
  return { choices, trace, blocked }
}

function chooseAs(
  planned: Choice | undefined,
  options: string[],
  goesOn: boolean,
  spent: number,
): Choice {
  const costs = options.map((_, index) => (goesOn && index > 0 ? 1 : 0))
  if (!planned) return { options, costs, chosen: 0, spent }
  if (planned.options.join() !== options.join()) {
    throw new Diverged(
      `A schedule went another way: [${options.join()}] instead of [${planned.options.join()}].`,
    )
  }
  return { ...planned, spent }
}

/** The next schedule in the order of the search; undefined after the last. */
function nextPrefix(choices: Choice[], bound: number): Choice[] | undefined {
  for (let depth = choices.length - 1; depth >= 0; depth--) {
    const choice = choices[depth] as Choice
    for (let chosen = choice.chosen + 1; chosen < choice.options.length; chosen++) {
      if (choice.spent + (choice.costs[chosen] as number) > bound) continue
      return [...choices.slice(0, depth), { ...choice, chosen }]
    }
  }
  return undefined
}
