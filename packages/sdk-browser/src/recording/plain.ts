import type { serializedNodeWithId } from '@rrweb/types'
import type { Rrweb } from './rrweb.ts'

/** Elements with state beyond their attributes. rrweb serializes them with their content. */
export const WHOLE = new Set(
  'style link script meta title base noscript input textarea select option optgroup'.split(' '),
)
/** The same, but with large content: rrweb serializes the element, we its children. */
const OWN = new Set('audio video canvas iframe dialog form object'.split(' '))
const PLAIN = /^[a-z][a-z0-9]*$/i
/** The only elements, except custom ones, that can have a shadow root. */
export const HOSTS = new Set(
  'article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span'.split(
    ' ',
  ),
)

/** Whether an element with this name is nothing but its attributes and content. */
export function isPlain(tag: string) {
  const known = plain.get(tag) ?? (!WHOLE.has(tag) && !OWN.has(tag) && PLAIN.test(tag))
  if (plain.size < 1000) plain.set(tag, known)
  return known
}

const plain = new Map<string, boolean>()

/**
 * Serializes and registers an added node as rrweb would, if it is plain and in a plain place of
 * this document. Otherwise returns undefined, and rrweb does it.
 */
export function plainNode(
  mirror: Rrweb['mirror'],
  genId: () => number,
  node: Node,
  parent: Node,
): serializedNodeWithId | undefined {
  const { localName, ownerDocument, nodeType } = parent as Element
  if (nodeType !== 1 || ownerDocument !== document) return undefined
  const known = mirror.getId(node)
  if (known < -1) return undefined
  let serialized: serializedNodeWithId | undefined
  if (node.nodeType === 3) {
    if (WHOLE.has(localName)) return undefined
    serialized = { type: 3, textContent: node.nodeValue ?? '', id: known }
  } else if (node.nodeType === 1) {
    const element = node as Element
    const tag = element.localName
    const attributes = isPlain(tag) && attributesOf(element)
    if (!attributes) return undefined
    serialized = elementNode(element, tag, attributes, [], known)
  }
  if (!serialized) return undefined
  if (known === -1) serialized.id = genId()
  mirror.add(node, serialized)
  return serialized
}

type SerializedElement = Extract<serializedNodeWithId, { type: 2 }>

export function elementNode(
  element: Element,
  tag: string,
  attributes: SerializedElement['attributes'],
  childNodes: serializedNodeWithId[],
  id: number,
) {
  const node = {
    type: 2,
    tagName: tag.toLowerCase(),
    attributes,
    childNodes,
    id,
  } as SerializedElement
  if (element.namespaceURI === 'http://www.w3.org/2000/svg') node.isSVG = true
  return node
}

const SLOW = new Set(
  'srcset imagesrcset background data xlink:href data-lethe-block autocomplete popover'.split(' '),
)

/** Returns the attributes of an element; undefined for special cases, which rrweb handles. */
export function attributesOf(element: Element): Record<string, string | number> | undefined {
  const attributes: Record<string, string | number> = {}
  // Reading `attributes` would create an object for each.
  for (const name of element.getAttributeNames()) {
    const value = element.getAttribute(name) as string
    if (SLOW.has(name)) return undefined
    if (name === 'class' && value.includes('rr-block')) return undefined
    if (name === 'style' && value.includes('url(')) return undefined
    let kept = value
    if (value && (name === 'href' || name === 'src')) {
      const resolved = (element as HTMLAnchorElement & HTMLImageElement)[name]
      if (typeof resolved !== 'string') return undefined
      kept = resolved
    }
    attributes[name] = kept
  }
  return attributes
}
