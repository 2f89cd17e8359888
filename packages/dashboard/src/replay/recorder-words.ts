import { isFailedRequest } from '@lethe/contract/recorded-events.ts'
import { EventType } from '@rrweb/types'
import type { Labels } from './labels.ts'
import type { Words } from './outline.ts'
import { finite, isRecord, text } from './untrusted.ts'

/** Texts for the reasons why the recorder paused, stopped or dropped events. */
const reasons: Record<string, Record<string, string>> = {
  'lethe:paused': {
    idle: 'Paused: no activity for five minutes',
    buffer_full: 'Paused: offline and the buffer was full',
    offline: 'Paused: the session ended and a new one could not start offline',
  },
  'lethe:stopped': {
    page_too_big: 'Recording stopped: the page has too many elements',
    too_many_mutations: 'Recording stopped: the page changes too often',
    snapshot_too_big: 'Recording stopped: the page is too large to send',
    too_big: 'Recording stopped: a change was too large to send',
    refused: 'Recording stopped: the server rejected it',
    fault: 'Recording stopped: the recorder failed',
  },
  'lethe:dropped': {
    buffer_full: 'missing: offline for too long',
    too_big: 'missing: too large to send',
    refused: 'missing: rejected by the server',
  },
}

/** Returns the text for an event of the recorder about itself; undefined for other events. */
export function recorderWords(tag: string, payload: Record<string, unknown>): string | undefined {
  const ofTag = Object.hasOwn(reasons, tag) ? reasons[tag] : undefined
  const reason = String(payload.reason)
  if (!ofTag || !Object.hasOwn(ofTag, reason)) return undefined
  if (tag !== 'lethe:dropped') return ofTag[reason]
  const count = Number(payload.events)
  return `${Number.isSafeInteger(count) ? count : 'Some'} events ${ofTag[reason]}`
}

/** Whether parts of the recording after this event may be missing. */
export function isHole(raw: unknown): boolean {
  if (!isRecord(raw) || raw.type !== EventType.Custom || !isRecord(raw.data)) return false
  return /^lethe[:.](?:paused|dropped|gap)$/.test(text(raw.data.tag))
}

const textMaximum = 300

/** Describes an event of the recorder or the application for the list. */
export function describeCustom(
  { tag, payload: given }: Record<string, unknown>,
  labels: Labels,
): Words | undefined {
  const name = text(tag)
  const payload = isRecord(given) ? given : {}
  const said = (key: string) => text(payload[key]).slice(0, textMaximum)
  switch (name) {
    case '':
      return undefined
    case 'lethe.vital':
      return describeVital(payload)
    case 'lethe.error':
      return { what: 'error', text: said('message') || 'Error', isWrong: true }
    case 'lethe.console':
      return { what: 'console', text: said('text'), isWrong: payload.level === 'error' }
    case 'lethe.request':
      return describeRequest(payload, said)
    case 'lethe.click': {
      const what = payload.kind === 'rage' ? 'rage' : 'dead'
      return { what, text: labels.get(finite(payload.id) ?? -1) ?? 'the page', isWrong: true }
    }
    case 'lethe.gap':
      return { what: 'other', text: 'Part of this recording is missing', isWrong: true }
  }
  const words = recorderWords(name, payload)
  if (words !== undefined) return { what: 'other', text: words }
  const href = said('href') || said('url')
  return href ? { what: 'page', text: href } : { what: 'other', text: name.slice(0, 60) }
}

function describeRequest(payload: Record<string, unknown>, said: (key: string) => string): Words {
  const status = finite(payload.status) ?? 0
  const milliseconds = finite(payload.milliseconds)
  return {
    what: 'request',
    text: `${said('method') || 'GET'} ${pathOf(said('url'))} ${status === 0 ? 'failed' : status}`,
    isWrong: isFailedRequest(status),
    ...(milliseconds !== undefined && { note: `${Math.round(milliseconds)} ms` }),
  }
}

/** Good up to `good`, poor above `poor`: https://web.dev/articles/vitals. */
const vitals: Record<string, { good: number; poor: number }> = {
  LCP: { good: 2_500, poor: 4_000 },
  CLS: { good: 0.1, poor: 0.25 },
  INP: { good: 200, poor: 500 },
  FCP: { good: 1_800, poor: 3_000 },
  TTFB: { good: 800, poor: 1_800 },
}

function describeVital({ name, value: given }: Record<string, unknown>): Words | undefined {
  const value = finite(given)
  const limits = Object.hasOwn(vitals, text(name)) ? vitals[text(name)] : undefined
  if (!limits || value === undefined) return undefined
  const measured = name === 'CLS' ? value.toFixed(2) : `${Math.round(value)} ms`
  const isPoor = value > limits.poor
  const note = isPoor ? 'poor' : value > limits.good ? 'needs improvement' : 'good'
  return { what: 'vital', text: `${name} ${measured}`, isWrong: isPoor, note }
}

/** An address without its origin. */
export function pathOf(href: string): string {
  return href.replace(/^https?:\/\/[^/]+(?=\/)/, '')
}
