import {
  EventType,
  type eventWithTime,
  IncrementalSource,
  MouseInteractions,
  NodeType,
} from '@rrweb/types'
import type { Outline, OutlineEntry } from './messages.ts'
import { recorderWords } from './recorder-words.ts'
import { isRecord, text } from './untrusted.ts'

/** Longer than this without anything done counts as idle. */
const idleMilliseconds = 5_000

const entriesMaximum = 5_000
const labelMaximum = 60

/** Gathers, event by event, what is worth listing of a recording, and where nobody did anything. */
export function createOutline() {
  const labels = new Map<number, string>()
  const entries: OutlineEntry[] = []
  const idle: Outline['idle'] = []
  let startedAt: number | undefined
  let activeAt = 0
  let endsAt = 0
  let lastInput = -1

  const list = (at: number, what: OutlineEntry['what'], words: string) => {
    if (entries.length < entriesMaximum) entries.push({ at, what, text: words })
  }

  /** `raw` is the event as it was recorded, `event` what the filter left of it. */
  function note(raw: unknown, event: eventWithTime | undefined): void {
    const timestamp = event?.timestamp ?? (isRecord(raw) ? Number(raw.timestamp) : Number.NaN)
    if (!Number.isFinite(timestamp)) return
    startedAt ??= timestamp
    const at = Math.max(0, timestamp - startedAt)
    endsAt = Math.max(endsAt, at)
    const words = wordsOf(raw, event)
    if (words) list(at, words.what, words.text)
    if (event && isActivity(event)) {
      if (at - activeAt > idleMilliseconds) idle.push({ from: activeAt, to: at })
      activeAt = Math.max(activeAt, at)
    }
  }

  function wordsOf(raw: unknown, event: eventWithTime | undefined): Words | undefined {
    if (!isRecord(raw) || !isRecord(raw.data)) return undefined
    if (raw.type === EventType.Custom) return customWords(raw.data)
    if (raw.type === EventType.Meta) return { what: 'page', text: text(raw.data.href) || 'a page' }
    if (!event) return undefined
    learnLabels(labels, event)
    if (event.type !== EventType.IncrementalSnapshot) return undefined
    const { data } = event
    if (data.source !== IncrementalSource.Input) {
      if (data.source === IncrementalSource.MouseInteraction && isClick(data.type)) {
        lastInput = -1
        return { what: 'click', text: labels.get(data.id) ?? 'the page' }
      }
      if (data.source === IncrementalSource.ViewportResize) {
        return { what: 'resize', text: `${data.width} × ${data.height}` }
      }
      return undefined
    }
    if (data.id === lastInput) return undefined
    lastInput = data.id
    return { what: 'input', text: labels.get(data.id) ?? 'a field' }
  }

  function sofar(isComplete: boolean): Outline {
    const tail = endsAt - activeAt > idleMilliseconds ? [{ from: activeAt, to: endsAt }] : []
    return {
      startedAt: startedAt ?? 0,
      duration: endsAt,
      isComplete,
      entries: entries.toSorted((one, other) => one.at - other.at),
      idle: [...idle, ...tail],
    }
  }

  return { note, sofar }
}

interface Words {
  what: OutlineEntry['what']
  text: string
}

function customWords({ tag, payload }: Record<string, unknown>): Words | undefined {
  const name = text(tag)
  if (name === '') return undefined
  const said = isRecord(payload) ? recorderWords(name, payload) : undefined
  if (said !== undefined) return { what: 'custom', text: said }
  const href = isRecord(payload) ? text(payload.href) || text(payload.url) : ''
  return href ? { what: 'page', text: href } : { what: 'custom', text: name.slice(0, labelMaximum) }
}

function isClick(type: MouseInteractions): boolean {
  return type === MouseInteractions.Click || type === MouseInteractions.DblClick
}

/** Whether somebody did it, and not the page by itself. */
function isActivity(event: eventWithTime): boolean {
  if (event.type !== EventType.IncrementalSnapshot) return event.type === EventType.Meta
  const { source } = event.data
  return (
    source === IncrementalSource.MouseMove ||
    source === IncrementalSource.MouseInteraction ||
    source === IncrementalSource.Scroll ||
    source === IncrementalSource.Input ||
    source === IncrementalSource.TouchMove ||
    source === IncrementalSource.Drag ||
    source === IncrementalSource.Selection
  )
}

/** Remembers what elements are called, for the clicks on them that come later. */
function learnLabels(labels: Map<number, string>, event: eventWithTime): void {
  if (event.type === EventType.FullSnapshot) {
    labels.clear()
    learn(labels, event.data.node as unknown as Node, '')
  } else if (
    event.type === EventType.IncrementalSnapshot &&
    event.data.source === IncrementalSource.Mutation
  ) {
    for (const { node, parentId } of event.data.adds) {
      const within = labels.get(parentId)?.startsWith('“') ? (labels.get(parentId) ?? '') : ''
      learn(labels, node as unknown as Node, within)
    }
  }
}

interface Node {
  id: number
  type: NodeType
  tagName?: string
  textContent?: string
  attributes?: Record<string, unknown>
  childNodes?: Node[]
}

const namedTags = new Set([
  'button',
  'a',
  'summary',
  'label',
  'option',
  'select',
  'input',
  'textarea',
])

/** `within` is what the control around this node is called: a click on its icon is one on it. */
function learn(labels: Map<number, string>, node: Node, within: string): void {
  let label = within
  if (node.type === NodeType.Element) {
    const tag = node.tagName ?? ''
    const role = text(node.attributes?.role)
    if (namedTags.has(tag) || role === 'button' || role === 'link' || role === 'tab') {
      label = nameOf(node) || label || tagWords(tag)
    }
    labels.set(node.id, label || tagWords(tag))
  } else if (label) labels.set(node.id, label)
  for (const child of node.childNodes ?? []) learn(labels, child, label)
}

function nameOf(node: Node): string {
  const { attributes = {} } = node
  const names = [
    text(attributes['aria-label']),
    textWithin(node).replace(/\s+/g, ' ').trim(),
    text(attributes.placeholder),
    text(attributes.name),
  ]
  // One that is masked says nothing.
  const name = names.find((one) => /[^*\s]/.test(one))
  if (name === undefined) return ''
  return `“${name.length > labelMaximum ? `${name.slice(0, labelMaximum)}…` : name}”`
}

function textWithin(node: Node): string {
  if (node.type === NodeType.Text) return node.textContent ?? ''
  let words = ''
  for (const child of node.childNodes ?? []) {
    words += `${textWithin(child)} `
    if (words.length > 200) break
  }
  return words
}

function tagWords(tag: string): string {
  if (tag === 'img' || tag === 'svg' || tag === 'picture') return 'a picture'
  if (tag === 'input' || tag === 'textarea' || tag === 'select') return 'a field'
  if (tag === 'button') return 'a button'
  if (tag === 'a') return 'a link'
  return 'the page'
}
