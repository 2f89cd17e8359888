import type { eventWithTime, IMirror, serializedNodeWithId } from '@rrweb/types'

/**
 * What the patched rrweb (build/rrweb.ts) hands to the snapshot: its own parts, so that the
 * mutations it observes afterwards speak of the same nodes.
 */
export interface Rrweb {
  mirror: IMirror<Node>
  /** One, once the page is observed. While locked it collects changes and emits nothing. */
  mutationBuffers: MutationBuffer[]
  genId(): number
  /** rrweb's own way with a node; `null` for one that is not recorded. */
  serializeNodeWithId(node: Node, options: object): serializedNodeWithId | null
  serializeOptions: { onSerialize(node: Node): void }
  /** The browser's own getters, also where the page has replaced them. */
  childNodes(node: Node): NodeList
  parentNode(node: Node): Node | null
  shadowRoot(node: Node): ShadowRoot | null
  stylesheetManager: { reset(): void }
  shadowDomManager: { init(): void }
  /** A sheet as text; `null` where it may not be read. */
  stringifyStylesheet(sheet: CSSStyleSheet): string | null
}

export interface MutationBuffer {
  lock(): void
  unlock(): void
  addedSet: Set<Node>
  movedSet: Set<Node>
}

/** `record` of rrweb with the options used here; its published types do not know the patch. */
export type Record = (options: {
  emit(event: eventWithTime): void
  takeSnapshot(rrweb: Rrweb): void
  errorHandler(error: unknown): boolean
  blockSelector: string
  ignoreSelector: string
  maskAllInputs: boolean
  maskInputFn(text: string, element: HTMLElement): string
  slimDOMOptions: 'all'
  sampling: { input: 'last' }
}) => (() => void) | undefined
