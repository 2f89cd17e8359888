import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as soon } from 'node:timers'
import type { Sql } from '../../src/sql.ts'

/*
 * Runs several actors, each in its lane with its own database connection, so that exactly one of
 * them takes a step at a time. A step is one statement, one commit or one call of the blob store of
 * the real product code. With breakpoints, which are locks held outside the lanes, a statement has
 * several steps. The caller chooses which lane takes the next step. Lanes that wait for the lock of
 * another are found by asking PostgreSQL (pg_blocking_pids), never by a timeout.
 */

/** An actor's place in the schedule. */
export interface Lane {
  name: string
  /** The process ID of its connection's backend. */
  pid: number
  /** The steps that the actor is ready to take, in order. */
  ready: Ready[]
  /** The step that was allowed and has not ended. */
  inFlight: string | undefined
  hasEnded: boolean
  isBlocked: boolean
  /** Its statement waits at a breakpoint. */
  isAtBreakpoint: boolean
}

/** Points at which statements pause. */
export interface Breakpoints {
  /** The process ID of the backend that holds the breakpoints. */
  pid: number
  /** Lets the statement of a lane continue to its next breakpoint, or to its end. */
  pass(pid: number): Promise<unknown>
  open(): Promise<unknown>
}

interface Ready {
  what: string
  allow(): void
  refuse(error: Error): void
  /** The number of steps when a sleep began; undefined for other steps. */
  sleepsSince: number | undefined
}

export interface Outcome {
  value?: unknown
  error?: unknown
}

export interface Scheduler {
  lanes: Lane[]
  /** Waits until no lane can continue without being allowed to. */
  settle(): Promise<void>
  /** The lanes that can take a step now. */
  enabled(): Lane[]
  /** Lets a lane take its next step; returns what it is. */
  step(lane: Lane): string
  /** Whether an actor sleeps until time passes. */
  isAsleep(): boolean
  /** Wakes all sleeping actors: time has passed. */
  wake(): void
  /** Stops all actors, so that none continues or holds a lock. */
  abandon(): Promise<void>
  outcomes: Map<string, Outcome>
}

const current = new AsyncLocalStorage<{ lane: Lane; scheduler: Inner }>()

/** The lane whose actor is running, if any. */
export function currentLane(): Lane | undefined {
  return current.getStore()?.lane
}

/** Runs a step of the current lane; outside a lane, just runs it. */
export function asStep<T>(what: string, run: () => Promise<T>): Promise<T> {
  const store = current.getStore()
  return store ? store.scheduler.take(store.lane, what, run) : run()
}

/** A sleep of the current lane: others go first, or time passes. Returns false outside a lane. */
export async function asSleep(): Promise<boolean> {
  const store = current.getStore()
  if (!store) return false
  await store.scheduler.take(store.lane, 'sleep', async () => {}, true)
  return true
}

interface Inner {
  take<T>(lane: Lane, what: string, run: () => Promise<T>, isSleep?: boolean): Promise<T>
}

/** Anything that takes longer is stuck. */
const stuckMilliseconds = 60_000

/** A statement that takes longer may be waiting for a lock. */
const patienceMilliseconds = 2

export class Stuck extends Error {
  override readonly name = 'Stuck'
}

/** Thrown in an actor that must not take another step because its schedule is over. */
class Abandoned extends Error {
  override readonly name = 'Abandoned'
}

export function startLanes(
  sql: Sql,
  actors: { name: string; pid: number; run: () => Promise<unknown> }[],
  breakpoints?: Breakpoints,
): Scheduler {
  let steps = 0
  let changes = 0
  let isAbandoned = false
  /** Resolves when the passed breakpoint is locked again. */
  let passing: Promise<unknown> | undefined
  let tell = () => {}
  const changed = () => {
    changes++
    tell()
  }
  const outcomes = new Map<string, Outcome>()
  const lanes: Lane[] = actors.map(({ name, pid }) => ({
    name,
    pid,
    ready: [],
    inFlight: undefined,
    hasEnded: false,
    isBlocked: false,
    isAtBreakpoint: false,
  }))

  const inner: Inner = {
    async take(lane, what, run, isSleep = false) {
      if (isAbandoned) throw new Abandoned()
      await new Promise<void>((allow, refuse) => {
        lane.ready.push({ what, allow, refuse, sleepsSince: isSleep ? steps : undefined })
        changed()
      })
      try {
        return await run()
      } finally {
        lane.inFlight = undefined
        changed()
      }
    },
  }

  actors.forEach(({ name, run }, index) => {
    const lane = lanes[index] as Lane
    void current
      .run({ lane, scheduler: inner }, run)
      .then(
        (value) => outcomes.set(name, { value }),
        (error) => outcomes.set(name, { error }),
      )
      .then(() => {
        lane.hasEnded = true
        changed()
      })
  })

  const isMoving = (lane: Lane) =>
    !lane.hasEnded &&
    !lane.isAtBreakpoint &&
    (lane.inFlight !== undefined || lane.ready.length === 0)

  async function settle() {
    const until = performance.now() + stuckMilliseconds
    await passing
    for (const lane of lanes) if (!isMoving(lane)) lane.isBlocked = false
    for (;;) {
      const moving = lanes.filter(isMoving)
      for (const lane of lanes) if (!moving.includes(lane)) lane.isBlocked = false
      if (moving.length === 0) return
      const isAllBlocked = moving.every((lane) => lane.isBlocked)
      if (!isAllBlocked && (await changeWithin(patienceMilliseconds))) continue
      const seen = changes
      if (await allBlocked(moving)) {
        if (seen !== changes) continue
        for (const lane of moving) lane.isBlocked = !lane.isAtBreakpoint
        return
      }
      for (const lane of moving) lane.isBlocked = false
      if (performance.now() > until) throw new Stuck(describe())
    }
  }

  function changeWithin(milliseconds: number): Promise<boolean> {
    const seen = changes
    return new Promise((resolve) => {
      const timer = soon(() => {
        tell = () => {}
        resolve(seen !== changes)
      }, milliseconds)
      tell = () => {
        clearTimeout(timer)
        tell = () => {}
        // Let what follows from the step run first.
        setImmediate(() => resolve(true))
      }
    })
  }

  /** Whether all of these wait for locks of lanes that will not release them by themselves. */
  async function allBlocked(moving: Lane[]): Promise<boolean> {
    const rows = await sql<{ pid: number; by: number[] }>`
      select pid, pg_blocking_pids(pid) as by
      from unnest(${moving.map((lane) => lane.pid)}::integer[]) as pid`
    const waitsFor = new Map(rows.map(({ pid, by }) => [pid, by]))
    for (const lane of moving) {
      if (breakpoints && waitsFor.get(lane.pid)?.includes(breakpoints.pid))
        lane.isAtBreakpoint = true
    }
    const still = new Set(lanes.filter((lane) => !isMoving(lane)).map((lane) => lane.pid))
    // Extends the set of paused lanes by those that wait for one of them. Lanes in a deadlock, or
    // that wait for others, are not reached.
    for (let hasGrown = true; hasGrown; ) {
      hasGrown = false
      for (const { pid } of moving.filter((lane) => !lane.isAtBreakpoint)) {
        const by = waitsFor.get(pid) ?? []
        if (still.has(pid) || by.length === 0 || !by.every((one) => still.has(one))) continue
        still.add(pid)
        hasGrown = true
      }
    }
    return moving.every((lane) => still.has(lane.pid))
  }

  function describe(): string {
    return lanes
      .map((lane) => {
        const what = lane.inFlight ?? lane.ready[0]?.what ?? 'nothing'
        return `${lane.name}${lane.hasEnded ? ' (ended)' : ''}: ${what}`
      })
      .join('\n')
  }

  const isAwake = ({ sleepsSince }: Ready) => sleepsSince === undefined || sleepsSince < steps

  return {
    lanes,
    outcomes,
    settle,
    enabled: () =>
      lanes.filter(
        ({ ready, inFlight, isAtBreakpoint }) =>
          isAtBreakpoint || (inFlight === undefined && ready[0] && isAwake(ready[0])),
      ),
    step(lane) {
      if (lane.isAtBreakpoint) {
        steps++
        lane.isAtBreakpoint = false
        passing = breakpoints?.pass(lane.pid)
        return `(continues) ${lane.inFlight}`
      }
      const { what, allow, sleepsSince } = lane.ready.shift() as Ready
      // Waking up is no progress that another lane may sleep for.
      if (sleepsSince === undefined) steps++
      lane.inFlight = what
      allow()
      return what
    },
    isAsleep: () => lanes.some(({ ready }) => ready[0] && !isAwake(ready[0])),
    wake() {
      steps++
    },
    async abandon() {
      isAbandoned = true
      for (const lane of lanes) lane.isAtBreakpoint = false
      await breakpoints?.open()
      for (const { ready } of lanes) {
        for (const { refuse } of ready.splice(0)) refuse(new Abandoned())
      }
      const until = performance.now() + stuckMilliseconds
      while (!lanes.every((lane) => lane.hasEnded)) {
        if (performance.now() > until) throw new Stuck(describe())
        await changeWithin(patienceMilliseconds)
      }
    },
  }
}
