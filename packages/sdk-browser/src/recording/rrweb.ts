import type { eventWithTime, IMirror, serializedNodeWithId } from '@rrweb/types'

/**
 * What the patched rrweb (build/rrweb.ts) passes to the snapshot: its own parts, so that mutations
 * it observes later refer to the same nodes.
 */
export interface Rrweb {
  mirror: IMirror<Node>
  /** Empty until the page is observed. A locked buffer collects changes and emits nothing. */
  mutationBuffers: MutationBuffer[]
  genId(): number
  /** Serializes a node as rrweb does; `null` if it is not recorded. */
  serializeNodeWithId(node: Node, options: object): serializedNodeWithId | null
  serializeOptions: { onSerialize(node: Node): void }
  /** The browser's own getters, even if the page has replaced them. */
  childNodes(node: Node): NodeList
  parentNode(node: Node): Node | null
  shadowRoot(node: Node): ShadowRoot | null
  stylesheetManager: { reset(): void }
  shadowDomManager: { init(): void }
  /** A sheet as text; `null` if it may not be read. */
  stringifyStylesheet(sheet: CSSStyleSheet): string | null
}

export interface MutationBuffer {
  lock(): void
  unlock(): void
  addedSet: Set<Node>
  movedSet: Set<Node>
}

/** `record` of rrweb with the options used here: its published types lack the patch. */
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
