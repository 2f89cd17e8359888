import { EventType, type eventWithTime, IncrementalSource, NodeType } from '@rrweb/types'
import { harmlessCss } from './filter-css.ts'
import { harmlessInput } from './filter-input.ts'
import {
  type AttributeValue,
  harmlessAttribute,
  harmlessDeclarations,
  harmlessTag,
  isShadowHost,
  placeholderTag,
} from './filter-markup.ts'
import { finite, isId, isRecord, listOf, text } from './untrusted.ts'

/** Deeper trees than any page has would overflow the stack of whoever walks them. */
const depthMaximum = 1_000

/**
 * The same events without anything that could run, load or lead elsewhere, and without any that
 * the player could not take. This is the second fence: the frame they are played in runs no script
 * and its CSP lets no request out, whatever stands in the events.
 */
export function filterEvents(events: Iterable<unknown>): eventWithTime[] {
  const filter = createFilter()
  return [...events].map(filter).filter((event) => event !== undefined)
}

/** A filter for one recording's events in their order: what a mutation may do depends on its target. */
export function createFilter(): (event: unknown) => eventWithTime | undefined {
  const seen: Seen = { tags: new Map(), styleTexts: new Set() }
  return (event) => {
    if (!isRecord(event) || !isRecord(event.data)) return undefined
    const timestamp = finite(event.timestamp)
    if (timestamp === undefined || Math.abs(timestamp) > 8.64e15) return undefined
    const data = harmlessData(seen, event.type, event.data)
    return data === undefined ? undefined : ({ type: event.type, data, timestamp } as eventWithTime)
  }
}

/** What the events so far built: the tag of each element, and the texts that are style sheets. */
interface Seen {
  tags: Map<number, string>
  styleTexts: Set<number>
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
  // Load events, and those of plug-ins and the application: the player has no use for them.
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
      return harmlessStyle(data)
  }
  return harmlessInput(data)
}

function harmlessMutation(seen: Seen, data: Data): Data {
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
      return { id, value: seen.styleTexts.has(id) ? harmlessCss(value) : value }
    }),
    attributes: listOf(data.attributes, ({ id, attributes }) =>
      isId(id) && isRecord(attributes)
        ? { id, attributes: harmlessAttributes(seen.tags.get(id), attributes) }
        : undefined,
    ),
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

type HarmlessNode = Data & { id: number }

/** A document needs its html element: the player looks for it without asking. */
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
  const { id } = node
  const common = { id, ...rootOf(node), ...(node.isShadow === true && { isShadow: true }) }
  switch (node.type) {
    case NodeType.Element:
      return harmlessElement(seen, node, common, depth)
    case NodeType.Text:
    case NodeType.CDATA: {
      const isStyle = parent === 'style' || parent === 'link'
      if (isStyle) seen.styleTexts.add(id)
      const content = text(node.textContent)
      return {
        ...common,
        type: NodeType.Text,
        textContent: isStyle ? harmlessCss(content) : content,
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
): HarmlessNode {
  const tag = harmlessTag(node.tagName, node.attributes)
  seen.tags.set(common.id, tag)
  const isRemoved = tag === placeholderTag && text(node.tagName).toLowerCase() !== placeholderTag
  const attributes = isRecord(node.attributes) ? node.attributes : {}
  return {
    ...common,
    type: NodeType.Element,
    tagName: tag,
    attributes: isRemoved ? {} : harmlessAttributes(tag, attributes),
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

function harmlessAttributes(tag: string | undefined, attributes: Data): Data {
  const harmless: Data = {}
  for (const [name, value] of Object.entries(attributes)) {
    const kept: AttributeValue | Data | undefined =
      name === 'style' && isRecord(value)
        ? harmlessDeclarations(value)
        : harmlessAttribute(tag, name, value)
    if (kept !== undefined) harmless[name] = kept
  }
  return harmless
}

function harmlessStyle(data: Data): Data | undefined {
  const { source, id, styleId } = data
  const target = { ...(isId(id) && { id }), ...(isId(styleId) && { styleId }) }
  if (source === IncrementalSource.AdoptedStyleSheet) {
    if (!isId(id)) return undefined
    return {
      source,
      id,
      styleIds: Array.isArray(data.styleIds) ? data.styleIds.filter(isId) : [],
      styles: listOf(data.styles, (style) =>
        isId(style.styleId)
          ? { styleId: style.styleId, rules: harmlessRules(style.rules) }
          : undefined,
      ),
    }
  }
  if (source === IncrementalSource.StyleDeclaration) {
    const { set, remove, index } = data
    return {
      source,
      ...target,
      index: indexOf(index) ?? [0],
      ...(isRecord(set) &&
        typeof set.value === 'string' && {
          set: {
            property: text(set.property),
            value: harmlessCss(set.value),
            ...(set.priority === 'important' && { priority: 'important' }),
          },
        }),
      ...(isRecord(remove) && { remove: { property: text(remove.property) } }),
    }
  }
  return {
    source,
    ...target,
    adds: harmlessRules(data.adds),
    removes: listOf(data.removes, ({ index }) => {
      const position = indexOf(index)
      return position === undefined ? undefined : { index: position }
    }),
    ...(typeof data.replace === 'string' && { replace: harmlessCss(data.replace) }),
    ...(typeof data.replaceSync === 'string' && { replaceSync: harmlessCss(data.replaceSync) }),
  }
}

function harmlessRules(rules: unknown): Data[] {
  return listOf(rules, ({ rule, index }) => {
    if (typeof rule !== 'string') return undefined
    const position = indexOf(index)
    return { rule: harmlessCss(rule), ...(position !== undefined && { index: position }) }
  })
}

/** The place of a rule: a number, or the path of numbers to a nested one. */
function indexOf(index: unknown): number | number[] | undefined {
  if (Array.isArray(index)) return index.every(isId) && index.length > 0 ? index : undefined
  return isId(index) ? index : undefined
}
