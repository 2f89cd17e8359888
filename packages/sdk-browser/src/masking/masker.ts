import type { addedNodeMutation, eventWithTime, serializedNodeWithId } from '@rrweb/types'
import { elapsed } from '../recording/page-natives.ts'
import { maskAttributes, maskDeclaration, maskValue, type Rule } from './attributes.ts'
import { maskCss } from './css.ts'
import { createLook, type Look } from './look.ts'
import * as bits from './node.ts'
import { LEVELS, type Masking } from './preset.ts'
import { maskPatterns, stars } from './text.ts'
import { maskTokens, maskUrl } from './url.ts'

export interface MaskEvent {
  (event: eventWithTime): eventWithTime | undefined
  /** Masks a snapshot in slices: call the returned function until it returns the masked event. */
  slices(event: FullSnapshot): (until: number) => eventWithTime | undefined
  /**
   * The attribute selectors of the page's style sheets. Call `learn` for a style sheet that is not
   * in the events before those of the elements it styles.
   */
  look: Look
}

type FullSnapshot = Extract<eventWithTime, { type: 2 }>

/**
 * Creates the function that masks every recorded event before it is sent. It returns a copy with
 * only what the preset shows, or undefined if the event must not be kept. It never changes the
 * original, and remembers only the tree of nodes and the selectors of style sheets. Unknown nodes,
 * attributes and kinds of events are hidden.
 */
export function createMasker(masking: Masking): MaskEvent {
  const nodes = bits.createNodes()
  const look = createLook()
  const context = { nodes, look, level: LEVELS[masking.preset], unmask: masking.unmask }

  const slices: MaskEvent['slices'] = (event) => {
    nodes.clear()
    learnStyles(look, event.data.node)
    const frames: Frame[] = []
    const node = maskNode(context, event.data.node, undefined, { own: 0, all: 0 }, frames)
    return (until) => {
      maskBelow(context, frames, until)
      return frames.length ? undefined : { ...event, data: { ...event.data, node } }
    }
  }
  const mask = (event: eventWithTime) => {
    switch (event.type) {
      case 0: // DOMContentLoaded
      case 1: // load
        return { ...event, data: {} }
      case 2:
        return slices(event)(Number.POSITIVE_INFINITY)
      case 3:
        return maskChange(context, event)
      case 4: {
        const href = (context.level ? maskUrl : maskTokens)(event.data.href)
        return { ...event, data: { ...event.data, href } }
      }
      case 5:
        return /^lethe[:.]/.test(event.data.tag) ? event : undefined
    }
    return undefined
  }
  return Object.assign(mask, { slices, look })
}

/** Whether an added node may contain a style sheet: most are single nodes. */
const isTree = (node: serializedNodeWithId) =>
  (node.type === 0 || node.type === 2) &&
  (node.childNodes.length > 0 || (node.type === 2 && '_cssText' in node.attributes))

/** Learns the style sheets of a tree before masking it, as elements may precede their styles. */
function learnStyles(look: Look, root: serializedNodeWithId): void {
  const stack: { node: serializedNodeWithId; isStyle: boolean }[] = [{ node: root, isStyle: false }]
  for (let at = stack.pop(); at; at = stack.pop()) {
    const { node, isStyle } = at
    if (node.type === 3 && isStyle) look.learn(node.textContent)
    if (node.type !== 0 && node.type !== 2) continue
    const css = node.type === 2 && node.attributes._cssText
    if (typeof css === 'string') look.learn(css)
    const style = node.type === 2 && node.tagName === 'style'
    for (const child of node.childNodes) stack.push({ node: child, isStyle: style })
  }
}

interface Context {
  nodes: bits.Nodes
  look: Look
  level: number
  unmask: boolean
}

/** Returns the rule for a node. Nothing of an unknown node is shown. */
function ruleOf(context: Context, own: number, all: number | undefined): Rule {
  if (all === undefined) return { own, all: bits.ENTRY, level: 2, shown: false }
  const masked = (all & bits.MASK) !== 0
  const shown = context.unmask && !masked && (all & bits.UNMASK) !== 0
  const level = masked ? 2 : shown ? Math.min(context.level, 1) : context.level
  return { own, all, level, shown }
}

/** The children of a node that are still to be masked, and the list their masked copies go into. */
interface Frame {
  id: number
  here: { own: number; all: number } | undefined
  children: serializedNodeWithId[]
  next: number
  into: serializedNodeWithId[]
}

/** Masks the nodes in the frames until none are left or the time is up. */
function maskBelow(context: Context, frames: Frame[], until: number): void {
  for (let count = 1; frames.length; count++) {
    const frame = frames[frames.length - 1] as Frame
    const child = frame.children[frame.next++]
    if (child) frame.into.push(maskNode(context, child, frame.id, frame.here, frames))
    else frames.pop()
    if (count % 32 === 0 && elapsed() > until) return
  }
}

function maskTree(
  context: Context,
  node: serializedNodeWithId,
  parentId: number,
  parent: { own: number; all: number } | undefined,
): serializedNodeWithId {
  const frames: Frame[] = []
  const masked = maskNode(context, node, parentId, parent, frames)
  maskBelow(context, frames, Number.POSITIVE_INFINITY)
  return masked
}

/** Masks the node itself, and adds a frame for its children. */
function maskNode(
  context: Context,
  node: serializedNodeWithId,
  parentId: number | undefined,
  parent: { own: number; all: number } | undefined,
  frames: Frame[],
): serializedNodeWithId {
  // A text node is part of its element, so it also gets the bits that are not inherited.
  const own =
    node.type === 2
      ? bits.bitsOf(node.tagName, node.attributes, node.isSVG === true)
      : node.type === 3 && parent
        ? parent.own & ~bits.INHERITED
        : 0
  context.nodes.add(node.id, parentId, own)
  const all = parent && (parent.all & bits.INHERITED) | own
  const rule = ruleOf(context, own, all)
  if (node.type === 3) return { ...node, textContent: maskText(node.textContent, rule) }
  if (node.type === 5) return { ...node, textContent: '' }
  if (node.type !== 0 && node.type !== 2) return node
  const here = all === undefined ? undefined : { own, all }
  const childNodes: serializedNodeWithId[] = []
  if (!(own & bits.BLOCK) && node.childNodes.length) {
    frames.push({ id: node.id, here, children: node.childNodes, next: 0, into: childNodes })
  }
  if (node.type === 0) return { ...node, childNodes }
  const attributes = maskAttributes(node.attributes, rule, context.look) as typeof node.attributes
  return { ...node, attributes, childNodes }
}

function maskText(text: string, { own, all, level, shown }: Rule) {
  if (own & bits.DROPPED_TEXT) return ''
  if (own & bits.STYLE) return maskCss(text, level)
  if (all & bits.BLOCK) return ''
  if (own & bits.FIELD && !shown) return stars(text)
  const label = (all & bits.FORM) !== 0 && (all & bits.LABEL) !== 0
  if (!shown && (level === 2 || (level === 1 && (label || all & bits.ENTRY)))) return stars(text)
  return level ? maskPatterns(text) : text
}

type Change = Extract<eventWithTime, { type: 3 }>

/** Masks an incremental event, by its source. */
function maskChange(context: Context, event: Change): eventWithTime | undefined {
  const { data } = event
  switch (data.source) {
    case 0:
      return maskMutation(context, event, data)
    case 5: {
      const found = context.nodes.find(data.id)
      if (found && found.all & (bits.BLOCK | bits.IGNORE)) return undefined
      // The text of an input event was typed or chosen, even if the element has changed since.
      const own = ((found?.own ?? 0) | bits.FIELD) & ~(bits.BUTTON | bits.NUMBER)
      const rule = ruleOf(context, own, found?.all)
      const isChecked = data.isChecked && (rule.shown || rule.level === 0)
      return { ...event, data: { ...data, text: maskValue(data.text, rule) ?? '', isChecked } }
    }
    case 8: // rules of a style sheet
    case 13: // one declaration of a rule
    case 15: // constructed style sheets
      learnRules(context.look, data)
      return { ...event, data: maskRules(data, context.level) }
    case 1: // pointer, drag and touch: only positions
    case 2:
    case 3: // scroll
    case 4: // size of the window
    case 6:
    case 7: // media: play, pause, volume
    case 12:
    case 14: // selection: node IDs and offsets
    case 16: // name of a custom element
      return event
  }
  return undefined
}

function maskMutation(
  context: Context,
  event: Change,
  data: Extract<Change['data'], { source: 0 }>,
): eventWithTime {
  const { nodes } = context
  for (const { id } of data.removes) nodes.remove(id)
  for (const { node } of data.adds) if (isTree(node)) learnStyles(context.look, node)
  const adds: addedNodeMutation[] = []
  let parent: ReturnType<typeof nodes.find>
  let parentId: number | undefined
  for (const add of data.adds) {
    // Many added nodes share a parent, so it is looked up once.
    if (!parent || add.parentId !== parentId) parent = nodes.find(add.parentId)
    parentId = add.parentId
    const node = maskTree(context, add.node, add.parentId, parent)
    if (!parent || !(parent.all & bits.BLOCK)) adds.push({ ...add, node })
  }
  const attributes = data.attributes.flatMap((change) => {
    for (const name of Object.keys(change.attributes)) {
      const value = change.attributes[name]
      const marks = bits.bitsOfAttribute(name, value)
      const cleared = name === 'data-lethe-unmask' && value === null ? bits.UNMASK : 0
      // A field never becomes a button: its value is what was typed into it before.
      const typed = name === 'type' && !(marks & bits.BUTTON) ? bits.BUTTON : 0
      nodes.mark(change.id, marks & ~bits.BUTTON, cleared | typed)
      if (name === '_cssText') context.look.learn(String(value))
    }
    const found = nodes.find(change.id)
    const rule = ruleOf(context, found?.own ?? bits.FIELD, found?.all)
    const masked = maskAttributes(change.attributes, rule, context.look)
    const hidden = found && found.all & bits.BLOCK && !(found.own & bits.BLOCK)
    return hidden ? [] : [{ ...change, attributes: masked as typeof change.attributes }]
  })
  const texts = data.texts.map((change) => {
    const found = nodes.find(change.id)
    const rule = ruleOf(context, found?.own ?? 0, found?.all)
    return { ...change, value: change.value === null ? null : maskText(change.value, rule) }
  })
  return { ...event, data: { ...data, adds, attributes, texts } }
}

/** Masks every string in a style change as CSS, and a single declaration by its property. */
function maskRules<T>(value: T, level: number): T {
  if (typeof value === 'string') return maskCss(value, level) as T
  if (Array.isArray(value)) return value.map((each) => maskRules(each, level)) as T
  if (typeof value !== 'object' || !value) return value
  if ('property' in value && 'value' in value) {
    const declared = maskDeclaration(String(value.property), value.value, level)
    return { ...value, value: declared }
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, maskRules(each, level)]),
  ) as T
}

function learnRules(look: Look, value: unknown): void {
  if (typeof value === 'string') look.learn(value)
  else if (typeof value === 'object' && value) {
    for (const each of Object.values(value)) learnRules(look, each)
  }
}
