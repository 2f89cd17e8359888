import type { eventWithTime, serializedNodeWithId } from '@rrweb/types'
import { now, setClock } from './clock.ts'
import { mediaOf } from './media.ts'
import { elapsed, SLICE_MILLISECONDS } from './page-natives.ts'
import { attributesOf, elementNode, HOSTS, isPlain, WHOLE } from './plain.ts'
import type { MutationBuffer, Rrweb } from './rrweb.ts'

export interface Snapshot {
  /** Completes it at once, because the page is being left. */
  finish(): void
  cancel(): void
}

interface Frame {
  parent: Node
  children: Node[]
  next: number
  into: serializedNodeWithId[]
  isShadow: boolean
  /** The page has run since the children were listed, so they may have moved. */
  isOld: boolean
}

/**
 * Takes a full snapshot in slices, between which the page runs, and passes its two events to
 * `done`.
 *
 * It is consistent because rrweb's buffers are locked meanwhile: they collect changes and emit them
 * after the snapshot. Nodes that were added, moved or removed since are left out: the buffers emit
 * where they went.
 */
export function takeSnapshot(
  rrweb: Rrweb,
  yieldThen: (run: () => void) => void,
  learn: (sheets: CSSStyleSheet[]) => void,
  done: (events: eventWithTime[]) => void,
): Snapshot {
  setClock()
  const timestamp = now()
  const frames: Frame[] = []
  const locked = new Set<MutationBuffer>()
  let root: serializedNodeWithId | null = null
  let over = false

  const lockAll = () => {
    for (const buffer of rrweb.mutationBuffers) {
      if (!locked.has(buffer)) buffer.lock()
      locked.add(buffer)
    }
  }
  const end = (events: eventWithTime[]) => {
    over = true
    if (events.length) done(events)
    for (const buffer of locked) buffer.unlock()
  }
  const begin = () => {
    rrweb.stylesheetManager.reset()
    rrweb.shadowDomManager.init()
    learn(document.adoptedStyleSheets ?? [])
    root = visit(rrweb, document, frames)
  }
  const slice = (until: number) => {
    if (over) return
    // rrweb starts to observe before the first slice, and observes shadow roots when it finds them,
    // so each slice may have new buffers.
    lockAll()
    if (!root) begin()
    const changed = rrweb.mutationBuffers.filter((each) => each.addedSet.size + each.movedSet.size)
    for (let count = 1; frames.length; count++) {
      const { isShadow, next, parent } = frames[frames.length - 1] as Frame
      if (isShadow && !next) learn((parent as ShadowRoot).adoptedStyleSheets ?? [])
      step(rrweb, frames, changed)
      if (count % 32 === 0 && elapsed() > until) break
    }
    lockAll()
    for (const frame of frames) frame.isOld = true
    if (frames.length) yieldThen(() => slice(elapsed() + SLICE_MILLISECONDS))
    else end(eventsOf(root as unknown as serializedNodeWithId, timestamp))
  }

  lockAll()
  yieldThen(() => slice(elapsed() + SLICE_MILLISECONDS))
  return { finish: () => slice(Number.POSITIVE_INFINITY), cancel: () => end([]) }
}

function eventsOf(node: serializedNodeWithId, timestamp: number): eventWithTime[] {
  const { scrollX: left, scrollY: top, innerWidth: width, innerHeight: height } = window
  // The player needs the meta event before the snapshot.
  const meta = { href: location.href, width, height, media: mediaOf() }
  return [
    { type: 4, data: meta, timestamp },
    { type: 2, data: { node, initialOffset: { left, top } }, timestamp },
  ]
}

/** Visits the next node, or leaves a finished one. */
function step(rrweb: Rrweb, frames: Frame[], changed: MutationBuffer[]) {
  const frame = frames[frames.length - 1] as Frame
  const node = frame.children[frame.next++]
  if (!node) {
    frames.pop()
    return
  }
  if (frame.isOld && rrweb.parentNode(node) !== frame.parent) return
  if (changed.some((each) => each.addedSet.has(node) || each.movedSet.has(node))) return
  const serialized = visit(rrweb, node, frames)
  if (!serialized) return
  if (frame.isShadow) serialized.isShadow = true
  frame.into.push(serialized)
}

function visit(rrweb: Rrweb, node: Node, frames: Frame[]): serializedNodeWithId | null {
  if (node.nodeType === 3) {
    const id = idOf(rrweb, node)
    const textContent = node.nodeValue ?? ''
    return id < 0 ? null : register(rrweb, node, { type: 3, textContent, id })
  }
  if (node.nodeType === 1) {
    const element = node as Element
    const tag = element.localName
    if (WHOLE.has(tag)) return rrweb.serializeNodeWithId(node, { ...rrweb.serializeOptions })
    const attributes = isPlain(tag) && attributesOf(element)
    if (attributes) return plainElement(rrweb, element, tag, attributes, frames)
  }
  const options = { ...rrweb.serializeOptions, skipChild: true }
  const serialized = rrweb.serializeNodeWithId(node, options)
  if (serialized && 'childNodes' in serialized && !('rr_width' in attributesIn(serialized))) {
    descend(rrweb, node, shadowOf(rrweb, node), serialized.childNodes, frames)
  }
  return serialized
}

const attributesIn = (node: serializedNodeWithId) => ('attributes' in node ? node.attributes : {})

const shadowOf = (rrweb: Rrweb, node: Node) => (node.nodeType === 1 ? rrweb.shadowRoot(node) : null)

function plainElement(
  rrweb: Rrweb,
  element: Element,
  tag: string,
  attributes: Record<string, string | number>,
  frames: Frame[],
) {
  const id = idOf(rrweb, element)
  if (id < 0) return null
  const childNodes: serializedNodeWithId[] = []
  const { scrollLeft, scrollTop } = element
  if (scrollLeft) attributes.rr_scrollLeft = scrollLeft
  if (scrollTop) attributes.rr_scrollTop = scrollTop
  const node = elementNode(element, tag, attributes, childNodes, id)
  const shadow = HOSTS.has(tag) ? rrweb.shadowRoot(element) : null
  if (shadow) node.isShadowHost = true
  register(rrweb, element, node)
  if (shadow) rrweb.serializeOptions.onSerialize(element)
  descend(rrweb, element, shadow, childNodes, frames)
  return node
}

/** The ID of a node, or a new one; negative if rrweb ignores the node. */
function idOf({ mirror, genId }: Rrweb, node: Node) {
  const known = mirror.getId(node)
  return known === -1 ? genId() : known
}

function register(rrweb: Rrweb, node: Node, serialized: serializedNodeWithId) {
  rrweb.mirror.add(node, serialized)
  return serialized
}

/** Light children come before those of the shadow root, as in rrweb. */
function descend(
  rrweb: Rrweb,
  parent: Node,
  shadow: ShadowRoot | null,
  into: serializedNodeWithId[],
  frames: Frame[],
) {
  const push = (of: Node, isShadow: boolean) => {
    const list = rrweb.childNodes(of)
    const children: Node[] = []
    for (let at = 0; at < list.length; at++) children.push(list[at] as Node)
    // An empty shadow root may still have style sheets.
    if (children.length || isShadow)
      frames.push({ parent: of, children, next: 0, into, isShadow, isOld: false })
  }
  if (shadow) push(shadow, true)
  push(parent, false)
}
