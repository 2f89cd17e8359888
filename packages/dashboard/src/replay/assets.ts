import { EventType, IncrementalSource, NodeType } from '@rrweb/types'
import { propertyOf } from './filter-css.ts'
import { isId, isRecord, text } from './untrusted.ts'

/** IDs of nodes added to the page for its assets: far above those of a recording. */
const idsFrom = 2 ** 40
const bytesMaximum = 40_000_000
const stylesMaximum = 2_000
/** How many addresses an image may have in a recording. */
const urlsMaximum = 4
const kept =
  /^data:(?:image\/[\w.+-]+|font\/[\w.+-]+|application\/[\w.+-]+)(?:;[\w=-]+)*;base64,[A-Za-z\d+/=]*$/

/**
 * Images and fonts that the recorder put into a recording (`lethe:asset`): the data of each once,
 * then the nodes it belongs to. They are played as mutations of the page, so that they pass the
 * filter like everything else.
 */
export function createAssets() {
  const assets = new Map<string, string>()
  let bytes = 0
  let styles = 0
  const keep = (key: string, data: string) => {
    if (assets.has(key) || !kept.test(data) || bytes + data.length > bytesMaximum) return
    bytes += data.length
    assets.set(key, data)
  }
  return {
    /** Returns what to play for a recorded event; undefined for nothing. */
    apply(raw: unknown): unknown {
      if (!isRecord(raw) || raw.type !== EventType.Custom || !isRecord(raw.data)) return raw
      if (raw.data.tag !== 'lethe:asset') return raw
      const payload = isRecord(raw.data.payload) ? raw.data.payload : {}
      const { key, data, id, css, urls, parent } = payload
      if (typeof key !== 'string') return undefined
      if (typeof data === 'string') keep(key, data)
      // Without a key, the recorder says that the address belongs to more than one image.
      const asset = key === '' && urls ? 'data:,' : assets.get(key)
      if (asset === undefined) return undefined
      if (isId(id)) return change(raw, { attributes: [{ id, attributes: { src: asset } }] })
      if (!isId(parent) || ++styles > stylesMaximum) return undefined
      const rule = Array.isArray(urls)
        ? `:root{${urls.slice(0, urlsMaximum).map(declaredAs(asset)).join(';')}}`
        : `@font-face{${text(css)};src:url("${asset}")}`
      return change(raw, { adds: styleOf(parent, idsFrom + 2 * styles, rule) })
    },
  }
}

const change = ({ timestamp }: Record<string, unknown>, changes: object) => ({
  type: EventType.IncrementalSnapshot,
  timestamp,
  data: {
    source: IncrementalSource.Mutation,
    adds: [],
    removes: [],
    texts: [],
    attributes: [],
    ...changes,
  },
})

const declaredAs = (asset: string) => (url: unknown) => `${propertyOf(text(url))}:url("${asset}")`

/** The player does not build children of added nodes, so each node is added separately. */
const styleOf = (parentId: number, id: number, textContent: string) => [
  {
    ...{ parentId, nextId: null },
    node: { type: NodeType.Element, tagName: 'style', attributes: {}, id, childNodes: [] },
  },
  {
    ...{ parentId: id, nextId: null },
    node: { type: NodeType.Text, textContent, isStyle: true, id: id + 1 },
  },
]
