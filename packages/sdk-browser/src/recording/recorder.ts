import { record as recordByRrweb } from '@rrweb/record'
import type { eventWithTime } from '@rrweb/types'
import { createMasker } from '../masking/masker.ts'
import type { Masking } from '../masking/preset.ts'
import { stars } from '../masking/text.ts'
import { quiet } from '../quiet.ts'
import { createAddress } from './address.ts'
import { CHANGES, createBudget, ELEMENTS_MAXIMUM, FAULTS } from './budget.ts'
import type { Record, Rrweb } from './rrweb.ts'
import { type Snapshot, takeSnapshot } from './snapshot.ts'
import { createTasks } from './tasks.ts'
import { createWriter } from './writer.ts'

export interface RecorderOptions {
  masking: Masking
  /** Takes one masked event as a line of JSON. */
  write(line: string, isSnapshot: boolean): void
  /** Takes an event about the recording itself. */
  say(tag: string, payload: object): void
  /** The page has gone to another route, and none was loaded. */
  routed(): void
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
  /** Gives the page back as it was. */
  stop(): void
}

const record = recordByRrweb as unknown as Record & { takeFullSnapshot(): void }

const BLOCKED = '[data-lethe-block],[autocomplete*="cc-" i],[autocomplete*="one-time-code" i]'
const IGNORED = '[data-lethe-ignore],[data-lethe-ignore] *'

/**
 * Records the page. What rrweb sees waits in a queue and is masked and written in tasks of its
 * own, so that neither the page's work nor the snapshot grows by it.
 */
export function createRecorder(options: RecorderOptions): Recorder {
  const { masking, write, say } = options
  const budget = createBudget(CHANGES, Date.now())
  const faults = createBudget(FAULTS, Date.now())
  const address = createAddress(masking.preset, options.routed)
  let held: eventWithTime[] = []
  let snapshot: Snapshot | undefined
  let stopRrweb: (() => void) | undefined
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
      if (faults.spend(1, Date.now())) resume()
      else end('fault')
    } catch {
      quiet(end)('fault')
    }
    return true
  }
  const inOwnTask = createTasks(fault)
  const writer = createWriter(createMasker(masking), write, inOwnTask, fault)
  const emit = (event: eventWithTime) => {
    if (!open) return
    if (!budget.spend(changesIn(event), Date.now())) return end('too_many_mutations')
    if (snapshot) held.push(event)
    else writer.queue([...address.moved(), event])
  }
  const snapshotWith = (rrweb: Rrweb) => {
    held = []
    snapshot = takeSnapshot(rrweb, inOwnTask, (events) => {
      snapshot = undefined
      address.told()
      writer.queue([...events, ...held])
      held = []
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
    // Half a page says nothing of how big it is, and rrweb would wait for all of it anyway.
    if (document.readyState === 'loading') {
      document.addEventListener('DOMContentLoaded', () => wanted && resume(), { once: true })
      return
    }
    const elements = document.getElementsByTagName('*').length
    if (elements > ELEMENTS_MAXIMUM) return end('page_too_big', { elements })
    pause()
    open = wanted = true
    if (stopRrweb) record.takeFullSnapshot()
    else stopRrweb = record(rrwebOptions(masking, emit, snapshotWith, fault))
  }
  const stop = () => {
    pause()
    stopRrweb?.()
    stopRrweb = undefined
  }
  const finish = () => {
    try {
      snapshot?.finish()
    } catch {
      fault()
    }
    writer.writeAll()
  }
  return { resume, pause, finish, stop }
}

function rrwebOptions(
  masking: Masking,
  emit: (event: eventWithTime) => void,
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
