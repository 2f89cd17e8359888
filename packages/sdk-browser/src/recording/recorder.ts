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
  /** Takes one masked event as a line of JSON. */
  write(line: string, isSnapshot: boolean, at: number): void
  /** Takes an event about the recording itself. */
  say(tag: string, payload: object): void
  /** Whether an event still belongs where the one before did. If not, it is not recorded. */
  still(): boolean
  /** The page has gone to another route, and none was loaded. */
  routed(): void
  /** What rrweb saw, before it is masked. */
  seen(event: eventWithTime): void
  /** Recording ended for good on this page; why has been said. */
  ended(): void
}

export interface Recorder {
  /** Begins, or goes on after a pause, with a full snapshot. */
  resume(): void
  /** Nothing that happens from now on is recorded. */
  pause(): void
  /** Writes what is still on its way: the page may be going away. */
  finish(): void
  /** Writes what has been seen until now, but no half snapshot. */
  write(): void
  /** Takes an event, of our own too, in its place among the others. False: it is not recorded. */
  emit(event: eventWithTime): boolean
  /** What the recording calls a node; below 1 where it does not know it. */
  idOf(node: Node): number
  /** Gives the page back as it was. */
  stop(): void
}

const record = recordByRrweb as unknown as Record & { takeFullSnapshot(): void }

const BLOCKED =
  '.rr-block,[data-lethe-block],[autocomplete*="cc-" i],[autocomplete*="one-time-code" i]'
/** What a flood takes of the budget: one after the other is too much for a page as well. */
const FLOOD_CHANGES = 5_000
const IGNORED = '[data-lethe-ignore],[data-lethe-ignore] *'

/**
 * Records the page. What rrweb sees waits in a queue and is masked and written in tasks of its
 * own, so that neither the page's work nor the snapshot grows by it.
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
  /** rrweb calls this from inside the page's own calls, so it must not throw either. */
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
      address.told()
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
 * Whether the page is not all there yet; then it runs once it is. Half a page says nothing of how big
 * it is, and rrweb would wait for all of it anyway.
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
    // Of what went in a flood nobody has told it.
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
    // The masker does this too, but what is typed should not even come as far as the queue.
    maskAllInputs: true,
    maskInputFn: (text, element) =>
      masking.unmask && element.closest('[data-lethe-unmask]') ? text : stars(text),
    slimDOMOptions: 'all',
    sampling: { input: 'last' },
  }
}

/** How much of the budget an event takes: a mutation holds as many changes as the page made. */
function changesIn(event: eventWithTime) {
  if (event.type !== 3 || event.data.source !== 0) return 1
  const { adds, attributes, texts, removes } = event.data
  return adds.length + attributes.length + texts.length + removes.length
}
