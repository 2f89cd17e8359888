import { EventType, type eventWithTime, IncrementalSource, NodeType } from '@rrweb/types'
import { type Budget, createBudget } from './budget.ts'
import { harmlessInput } from './filter-input.ts'
import {
  type AttributeValue,
  harmlessAttribute,
  harmlessDeclarations,
  harmlessTag,
  isShadowHost,
  placeholderTag,
} from './filter-markup.ts'
import { css, harmlessStyle } from './filter-sheets.ts'
import { finite, isId, isRecord, listOf, text } from './untrusted.ts'

/** Deeper trees would overflow the stack, and no real page has them. */
const depthMaximum = 1_000

/**
 * Returns a filter for the events of one recording, in the order in which they are played: what a
 * mutation may do depends on its target. It removes everything that could run, load or navigate, and
 * events that the player cannot handle. This is the second line of defence: the replay frame runs no
 * scripts, and its CSP allows no requests.
 */
export function createFilter(
  budget: Budget = createBudget(),
): (event: unknown) => eventWithTime | undefined {
  const seen: Seen = { tags: new Map(), styleTexts: new Set(), budget }
  return (event) => {
    if (!isRecord(event) || !isRecord(event.data)) return undefined
    const timestamp = finite(event.timestamp)
    if (timestamp === undefined || Math.abs(timestamp) > 8.64e15) return undefined
    const data = harmlessData(seen, event.type, event.data)
    return data === undefined ? undefined : ({ type: event.type, data, timestamp } as eventWithTime)
  }
}

/**
 * What the events so far built: the tag of each element, and the texts that are, or may become,
 * style sheets. Until the next full snapshot, an ID keeps the tag of its first declaration: the
 * player may have built any of several declarations.
 */
interface Seen {
  tags: Map<number, string>
  styleTexts: Set<number>
  budget: Budget
}

type Data = Record<string, unknown>

function harmlessData(seen: Seen, type: unknown, data: Data): Data | undefined {
  switch (type) {
    case EventType.FullSnapshot:
      return harmlessSnapshot(seen, data)
    case EventType.IncrementalSnapshot:
      return harmlessIncrement(seen, data)
    case EventType.Meta:
      return harmlessMeta(data)
  }
  // The player does not need load events, and those of plug-ins and the application.
  return undefined
}

function harmlessMeta({ width, height }: Data): Data | undefined {
  const pixels = [side(width), side(height)]
  return pixels.includes(undefined) ? undefined : { href: '', width: pixels[0], height: pixels[1] }
}

function side(value: unknown): number | undefined {
  const pixels = finite(value)
  return pixels === undefined ? undefined : Math.min(Math.max(Math.round(pixels), 1), 16_384)
}

function harmlessSnapshot(seen: Seen, data: Data): Data | undefined {
  seen.tags.clear()
  seen.styleTexts.clear()
  seen.budget.reset()
  const node = harmlessDocument(seen, data.node)
  if (!node) return undefined
  const offset = isRecord(data.initialOffset) ? data.initialOffset : {}
  return {
    node,
    initialOffset: { top: finite(offset.top) ?? 0, left: finite(offset.left) ?? 0 },
  }
}

function harmlessIncrement(seen: Seen, data: Data): Data | undefined {
  switch (data.source) {
    case IncrementalSource.Mutation:
      return harmlessMutation(seen, data)
    case IncrementalSource.ViewportResize: {
      const meta = harmlessMeta(data)
      return meta && { source: data.source, width: meta.width, height: meta.height }
    }
    case IncrementalSource.StyleSheetRule:
    case IncrementalSource.StyleDeclaration:
    case IncrementalSource.AdoptedStyleSheet:
      return harmlessStyle(seen.budget, data)
  }
  return harmlessInput(data)
}

function harmlessMutation(seen: Seen, data: Data): Data {
  // A child may come before its parent: the player waits for it.
  listOf(data.adds, ({ node }) => declare(seen, node, 0))
  return {
    source: IncrementalSource.Mutation,
    removes: listOf(data.removes, ({ parentId, id, isShadow }) =>
      isId(parentId) && isId(id)
        ? { parentId, id, ...(isShadow === true && { isShadow }) }
        : undefined,
    ),
    adds: listOf(data.adds, (add) => harmlessAdd(seen, add)),
    texts: listOf(data.texts, ({ id, value }) => {
      if (!isId(id)) return undefined
      if (typeof value !== 'string') return { id, value: null }
      return { id, value: seen.styleTexts.has(id) ? css(seen.budget, value) : value }
    }),
    attributes: listOf(data.attributes, ({ id, attributes }) => {
      const tag = isId(id) ? seen.tags.get(id) : undefined
      return tag !== undefined && isRecord(attributes)
        ? { id, attributes: harmlessAttributes(seen, tag, attributes) }
        : undefined
    }),
    ...(data.isAttachIframe === true && { isAttachIframe: true }),
  }
}

function harmlessAdd(seen: Seen, { parentId, previousId, nextId, node }: Data): Data | undefined {
  if (!isId(parentId)) return undefined
  const parent = seen.tags.get(parentId)
  const isDocument = isRecord(node) && node.type === NodeType.Document
  if (isDocument && parent !== 'iframe') return undefined
  const harmless = isDocument ? harmlessDocument(seen, node) : harmlessNode(seen, node, parent, 0)
  if (!harmless) return undefined
  return {
    parentId,
    ...(isId(previousId) && { previousId }),
    nextId: isId(nextId) ? nextId : null,
    node: harmless,
  }
}

/** Remembers the tags of elements before any of them is filtered. */
function declare(seen: Seen, node: unknown, depth: number): undefined {
  if (!isRecord(node) || depth > depthMaximum) return
  if (node.type === NodeType.Element && isId(node.id) && !seen.tags.has(node.id)) {
    seen.tags.set(node.id, harmlessTag(node.tagName, node.attributes))
  }
  listOf(node.childNodes, (child) => declare(seen, child, depth + 1))
}

type HarmlessNode = Data & { id: number }

/** A document needs an html element: the player relies on it. */
function harmlessDocument(seen: Seen, node: unknown): HarmlessNode | undefined {
  if (!isRecord(node) || node.type !== NodeType.Document || !isId(node.id)) return undefined
  const children = listOf(node.childNodes, (child) => {
    if (child.type === NodeType.DocumentType && isId(child.id)) {
      const { id, name, publicId, systemId } = child
      const doctype = /^[a-z][\w:.-]*$/i.test(text(name)) ? text(name) : 'html'
      return {
        type: NodeType.DocumentType,
        id,
        name: doctype,
        publicId: text(publicId),
        systemId: text(systemId),
        ...rootOf(child),
      }
    }
    const isHtml = text(child.tagName).toLowerCase() === 'html'
    return isHtml || child.type === NodeType.Comment
      ? harmlessNode(seen, child, undefined, 0)
      : undefined
  })
  const html = children.find((child) => child.type === NodeType.Element)
  if (!html) return undefined
  const doctype = children.find((child) => child.type === NodeType.DocumentType)
  return {
    type: NodeType.Document,
    id: node.id,
    childNodes: doctype ? [doctype, html] : [html],
    ...(node.compatMode === 'BackCompat' && { compatMode: 'BackCompat' }),
    ...rootOf(node),
  }
}

function harmlessNode(
  seen: Seen,
  node: unknown,
  parent: string | undefined,
  depth: number,
): HarmlessNode | undefined {
  if (!isRecord(node) || !isId(node.id) || depth > depthMaximum) return undefined
  if (!seen.budget.node()) return undefined
  const { id } = node
  const common = { id, ...rootOf(node), ...(node.isShadow === true && { isShadow: true }) }
  switch (node.type) {
    case NodeType.Element:
      return harmlessElement(seen, node, common, depth)
    case NodeType.Text:
    case NodeType.CDATA: {
      const isStyle = parent === 'style' || parent === 'link'
      // An unknown parent may become a style element.
      const isCss = isStyle || parent === undefined
      if (isCss) seen.styleTexts.add(id)
      const content = text(node.textContent)
      return {
        ...common,
        type: NodeType.Text,
        textContent: isCss ? css(seen.budget, content) : content,
        ...(isStyle && { isStyle }),
      }
    }
    case NodeType.Comment:
      return { ...common, type: NodeType.Comment, textContent: '' }
  }
  return undefined
}

function harmlessElement(
  seen: Seen,
  node: Data,
  common: HarmlessNode,
  depth: number,
): HarmlessNode | undefined {
  const tag = harmlessTag(node.tagName, node.attributes)
  if ((seen.tags.get(common.id) ?? tag) !== tag) return undefined
  seen.tags.set(common.id, tag)
  if (!seen.budget.element(tag)) return undefined
  const isRemoved = tag === placeholderTag && text(node.tagName).toLowerCase() !== placeholderTag
  const attributes = isRecord(node.attributes) ? node.attributes : {}
  return {
    ...common,
    type: NodeType.Element,
    tagName: tag,
    attributes: isRemoved ? {} : harmlessAttributes(seen, tag, attributes),
    childNodes: isRemoved
      ? []
      : listOf(node.childNodes, (child) => harmlessNode(seen, child, tag, depth + 1)),
    ...(node.isSVG === true && { isSVG: true }),
    ...(node.isShadowHost === true && isShadowHost(tag) && { isShadowHost: true }),
    ...(node.needBlock === true && { needBlock: true }),
  }
}

function rootOf({ rootId }: Data): { rootId?: number } {
  return isId(rootId) ? { rootId } : {}
}

function harmlessAttributes(seen: Seen, tag: string, attributes: Data): Data {
  const harmless: Data = {}
  for (const [name, value] of Object.entries(attributes)) {
    const kept: AttributeValue | Data | undefined =
      name === 'style' && isRecord(value)
        ? harmlessDeclarations(value)
        : harmlessAttribute(tag, name, value)
    if (kept === undefined) continue
    const isSheet = name.toLowerCase() === '_csstext' && typeof kept === 'string'
    harmless[name] = isSheet ? seen.budget.css(kept) : kept
  }
  return harmless
}
