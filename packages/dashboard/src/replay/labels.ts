import { EventType, type eventWithTime, IncrementalSource, NodeType } from '@rrweb/types'
import { text } from './untrusted.ts'

const labelMaximum = 60

/** The names of elements by ID, to describe later clicks. */
export type Labels = Map<number, string>

/** Learns the names of elements that an event builds. */
export function learnLabels(labels: Labels, event: eventWithTime): void {
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

/** `within` is the name of the control around this node: a click on its icon is a click on it. */
function learn(labels: Labels, node: Node, within: string): void {
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
  // Masked names say nothing.
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
