import { record as recordByRrweb } from '@rrweb/record'
import type { eventWithTime } from '@rrweb/types'
import { createMasker } from '../masking/masker.ts'
import type { Masking } from '../masking/preset.ts'
import { stars } from '../masking/text.ts'
import { quiet } from '../quiet.ts'
import { createAddress } from './address.ts'
import { CHANGES, createBudget, ELEMENTS_MAXIMUM, FAULTS } from './budget.ts'
import { now } from './clock.ts'
import { recordExtras } from './extras.ts'
import { onFlood } from './flood.ts'
import { onMedia } from './media.ts'
import { listen } from './page-natives.ts'
import type { Record, Rrweb } from './rrweb.ts'
import { createSheets } from './sheets.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'
import { createTasks } from './tasks.ts'
import { createWriter } from './writer.ts'

export interface RecorderOptions {
  masking: Masking
  /** Writes a masked event as a line of JSON. */
  write(line: string, isSnapshot: boolean, at: number): void
  /** Writes an event about the recording itself. */
  say(tag: string, payload: object): void
  /** Whether events still belong to the same session. If not, they are not recorded. */
  still(): boolean
  /** The page changed its route without a page load. */
  routed(): void
  /** What rrweb saw, before it is masked. */
  seen(event: eventWithTime): void
  /** Recording ended permanently on this page. The reason was written. */
  ended(): void
}

export interface Recorder {
  /** Starts, or continues after a pause, with a full snapshot. */
  resume(): void
  /** Nothing that happens from now on is recorded. */
  pause(): void
  /** Writes everything that is pending, because the page may be left. */
  finish(): void
  /** Writes what was seen so far, but no incomplete snapshot. */
  write(): void
  /** Queues an event, in order. Returns false if it is not recorded. */
  emit(event: eventWithTime): boolean
  /** The ID of a node in the recording; below 1 if it has none. */
  idOf(node: Node): number
  /** Stops and restores the page. */
  stop(): void
}

const record = recordByRrweb as unknown as Record & { takeFullSnapshot(): void }

const BLOCKED =
  '.rr-block,[data-lethe-block],[autocomplete*="cc-" i],[autocomplete*="one-time-code" i]'
/** What a flood takes from the budget, because repeated floods are too much for a page too. */
const FLOOD_CHANGES = 5_000
const IGNORED = '[data-lethe-ignore],[data-lethe-ignore] *'

/**
 * Records the page. Events of rrweb wait in a queue and are masked and written in their own tasks,
 * so that they delay neither the page nor the snapshot.
 */
export function createRecorder(options: RecorderOptions): Recorder {
  const { masking, write, say, still } = options
  const budget = createBudget(CHANGES, now())
  const faults = createBudget(FAULTS, now())
  const mask = createMasker(masking)
  const sheets = createSheets(mask.look)
  const address = createAddress(masking.preset, options.routed)
  let snapshot: Snapshot | undefined
  let held: eventWithTime[] = []
  let rrweb: ReturnType<typeof startRrweb> | undefined
  let wanted = false
  let open = false
  let ended = false
  const end = (reason: string, detail: object = {}) => {
    if (ended) return
    ended = true
    if (!snapshot) writer.writeAll()
    say('lethe:stopped', { reason, ...detail })
    stop()
    options.ended()
  }
  /** rrweb calls this within calls of the page, so it must not throw either. */
  const fault = () => {
    try {
      if (faults.spend(1, now())) resume()
      else end('fault')
    } catch {
      quiet(end)('fault')
    }
    return true
  }
  const inOwnTask = createTasks(fault)
  const writer = createWriter(mask, write, inOwnTask, fault, () => sheets.isLate() && resume())
  const emit = (event: eventWithTime) => {
    if (!open || !still()) return false
    options.seen(event)
    if (!budget.spend(changesIn(event), event.timestamp)) end('too_many_mutations')
    else if (snapshot) held.push(event)
    else writer.queue([...address.moved(), event])
    return open
  }
  const again = (changes: number) => {
    if (open && !snapshot) writer.writeAll()
    return open && (budget.spend(changes, now()) ? resume() : end('too_many_mutations'))
  }
  const snapshotWith = (given: Rrweb) => {
    held = []
    snapshot = takeSnapshot(given, inOwnTask, sheets.learn, (events) => {
      snapshot = undefined
      if (!still()) return
      address.noted()
      writer.queue([...events, ...held.splice(0)])
      for (const event of events) options.seen(event)
    })
  }
  const pause = () => {
    open = wanted = false
    snapshot?.cancel()
    snapshot = undefined
    writer.clear()
    held = []
  }
  const resume = () => {
    if (ended) return
    wanted = true
    if (isLoading(() => wanted && resume())) return
    const elements = document.getElementsByTagName('*').length
    if (elements > ELEMENTS_MAXIMUM) return end('page_too_big', { elements })
    pause()
    open = wanted = true
    if (rrweb) record.takeFullSnapshot()
    else rrweb = startRrweb(masking, emit, snapshotWith, fault, again)
  }
  const stop = () => {
    pause()
    rrweb = void rrweb?.stop()
  }
  const finish = () => {
    quiet(() => snapshot?.finish())()
    writer.writeAll()
  }
  const idOf = (node: Node) => rrweb?.idOf(node) ?? -1
  return { resume, pause, finish, write: writer.writeAll, emit, idOf, stop }
}

/**
 * Returns whether the page is still loading, and if so calls `run` afterwards. Until then its size
 * is unknown, and rrweb would wait anyway.
 */
function isLoading(run: () => void) {
  if (document.readyState !== 'loading') return false
  listen(document, 'DOMContentLoaded', run, { once: true })
  return true
}

function startRrweb(
  masking: Masking,
  emit: (event: eventWithTime) => unknown,
  snapshotWith: (rrweb: Rrweb) => void,
  fault: () => boolean,
  again: (changes: number) => unknown,
) {
  let rrweb: Rrweb | undefined
  let isFlooded = false
  const endExtras = recordExtras(() => rrweb, emit)
  const endMedia = onMedia(() => again(0))
  onFlood(() => {
    isFlooded = true
    again(FLOOD_CHANGES)
  })
  const take = (given: Rrweb) => {
    rrweb = given
    // It has not seen the removals of a flood.
    if (isFlooded) rrweb.mirror.reset()
    isFlooded = false
    snapshotWith(given)
  }
  const stopRrweb = record(rrwebOptions(masking, emit, take, fault))
  return {
    idOf: (node: Node) => rrweb?.mirror.getId(node) ?? -1,
    stop() {
      endExtras()
      endMedia()
      onFlood(() => {})
      stopRrweb?.()
    },
  }
}

function rrwebOptions(
  masking: Masking,
  emit: (event: eventWithTime) => unknown,
  snapshotWith: (rrweb: Rrweb) => void,
  errorHandler: () => boolean,
): Parameters<Record>[0] {
  return {
    emit,
    takeSnapshot: snapshotWith,
    errorHandler,
    blockSelector: BLOCKED,
    ignoreSelector: IGNORED,
    // The masker does this too, but typed text should not even reach the queue.
    maskAllInputs: true,
    maskInputFn: (text, element) =>
      masking.unmask && element.closest('[data-lethe-unmask]') ? text : stars(text),
    slimDOMOptions: 'all',
    sampling: { input: 'last' },
  }
}

/** How much of the budget an event takes: a mutation counts for each of its changes. */
function changesIn(event: eventWithTime) {
  if (event.type !== 3 || event.data.source !== 0) return 1
  const { adds, attributes, texts, removes } = event.data
  return adds.length + attributes.length + texts.length + removes.length
}
