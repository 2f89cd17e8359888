import type { attributes, eventWithTime, serializedNodeWithId } from '@rrweb/types'

/** A node as a test writes it: `['p', { class: 'x' }, 'text', ['b', {}, 'more']]`, or text. */
export type Sketch = string | [tag: string, attributes: attributes, ...children: Sketch[]]

/** Recorded events of a page, made by hand; ids are given in document order, from 1. */
export function page(...body: Sketch[]) {
  let id = 0
  const nodeOf = (sketch: Sketch): serializedNodeWithId => {
    if (typeof sketch === 'string') return { type: 3, textContent: sketch, id: ++id }
    const [tagName, attributes, ...children] = sketch
    const node = { type: 2 as const, tagName, attributes: { ...attributes }, id: ++id }
    return { ...node, childNodes: children.map(nodeOf) }
  }
  const documentNode: serializedNodeWithId = { type: 0, id: ++id, childNodes: [] }
  documentNode.childNodes.push(nodeOf(['html', {}, ['body', {}, ...body]]))
  return {
    snapshot: {
      type: 2,
      data: { node: documentNode, initialOffset: { left: 0, top: 0 } },
      timestamp: 1,
    } satisfies eventWithTime as eventWithTime,
    /** The id of the first element with this attribute, or of the text it holds. */
    idOf(attribute: string, what: 'element' | 'text' = 'element') {
      const found = find(documentNode, attribute)
      if (!found) throw new Error(`nothing has ${attribute}`)
      return what === 'element' ? found.id : (found.childNodes[0]?.id as number)
    },
    nodeOf,
  }
}

type Element = Extract<serializedNodeWithId, { type: 2 }>

function find(node: serializedNodeWithId, attribute: string): Element | undefined {
  if (node.type === 2 && attribute in node.attributes) return node
  if (node.type !== 0 && node.type !== 2) return undefined
  for (const child of node.childNodes) {
    const found = find(child, attribute)
    if (found) return found
  }
  return undefined
}

interface Mutation {
  adds?: { parentId: number; node: serializedNodeWithId }[]
  texts?: { id: number; value: string }[]
  attributes?: { id: number; attributes: Record<string, string | object | null> }[]
  removes?: { parentId: number; id: number }[]
}

export function mutation({ adds = [], texts = [], attributes = [], removes = [] }: Mutation) {
  return {
    type: 3,
    data: {
      source: 0,
      adds: adds.map((add) => ({ nextId: null, ...add })),
      texts,
      attributes,
      removes,
    },
    timestamp: 2,
  } as eventWithTime
}

export const input = (id: number, text: string, isChecked = false) =>
  ({ type: 3, data: { source: 5, id, text, isChecked }, timestamp: 3 }) as eventWithTime

export const meta = (href: string) =>
  ({ type: 4, data: { href, width: 1, height: 1 }, timestamp: 0 }) as eventWithTime
