/** Properties of a node that matter for masking, as bits. */
export const FORM = 1
/** A label or legend: inside a form its text is masked. */
export const LABEL = 2
/** Holds what the visitor types or can choose: textarea, select, option, contenteditable. */
export const ENTRY = 4
export const MASK = 8
export const UNMASK = 16
export const BLOCK = 32
export const IGNORE = 64
/** This bit and the following ones are not inherited by descendants. */
export const FIELD = 128
export const HIDDEN = 256
export const SECRET = 512
export const STYLE = 1024
export const MEDIA = 2048
export const DROPPED_TEXT = 4096
export const CHECKABLE = 8192
export const SVG = 16384
/** `a` and `area`: their URL leads to a page, not to an asset. */
export const LINK = 32768
/** An option, radio button or checkbox made of other elements: whether it is chosen is masked. */
export const CHOICE = 65536
/** An input whose value is its label. */
export const BUTTON = 131072
/** A field that can't display stars, such as a date or a color. */
export const TEXTLESS = 262144
/** An element whose `value` is a number set by the page. */
export const NUMBER = 524288
/** A custom element: its attributes can hold anything. */
export const CUSTOM = 1048576
export const INHERITED = FIELD - 1

export type Attributes = Record<string, unknown>

export interface MaskedNode {
  parentId: number | undefined
  bits: number
}

const BITS_OF_TAG: Record<string, number> = {
  a: LINK,
  area: LINK,
  form: FORM,
  label: LABEL,
  legend: LABEL,
  input: FIELD,
  textarea: FIELD | ENTRY,
  select: FIELD | ENTRY,
  datalist: ENTRY,
  optgroup: ENTRY,
  option: ENTRY,
  output: ENTRY,
  progress: NUMBER,
  meter: NUMBER,
  li: NUMBER,
  style: STYLE,
  noscript: DROPPED_TEXT | ENTRY,
  script: DROPPED_TEXT,
  ...Object.fromEntries(
    [
      'img',
      'image',
      'video',
      'audio',
      'source',
      'track',
      'picture',
      'object',
      'embed',
      'iframe',
    ].map((tag) => [tag, MEDIA]),
  ),
}

/** Returns the bits of an element with this tag and attributes. */
export function bitsOf(tag: string, attributes: Attributes, isSvg: boolean) {
  let bits = (BITS_OF_TAG[tag] ?? 0) | (isSvg ? SVG : tag.includes('-') ? CUSTOM : 0)
  for (const name of Object.keys(attributes))
    if (isMarking(name)) bits |= bitsOfAttribute(name, attributes[name])
  return bits
}

const MARKING = /^(?:data-(?:lethe|rr)-|contenteditable$|role$|aria-haspopup$|autocomplete$|type$)/i
const marking = new Map<string, boolean>()

/** Cached: a page has thousands of attributes, but few different names. */
function isMarking(name: string) {
  const known = marking.get(name) ?? MARKING.test(name)
  if (marking.size < 1000) marking.set(name, known)
  return known
}

/**
 * Returns the bits that an attribute sets. They stay set when the attribute changes: a field that
 * was once a password stays masked as one. Only unmasking ends with its attribute.
 */
export function bitsOfAttribute(name: string, value: unknown) {
  const text = String(value ?? '').toLowerCase()
  switch (name.toLowerCase()) {
    case 'data-lethe-mask':
      return MASK
    case 'data-lethe-unmask':
      return value === null ? 0 : UNMASK
    case 'data-lethe-block':
      return BLOCK
    case 'data-lethe-ignore':
      return IGNORE
    case 'data-rr-is-password':
      return SECRET
    case 'contenteditable':
      return value === null || text === 'false' ? 0 : ENTRY
    case 'role':
      if (/\boption\b/.test(text)) return ENTRY | CHOICE
      if (/\b(?:menuitem)?radio\b|\bcheckbox\b/.test(text)) return LABEL | CHOICE
      return /textbox|searchbox|combobox|spinbutton/.test(text) ? ENTRY : 0
    case 'aria-haspopup':
      return text === 'listbox' ? ENTRY : 0
    case 'autocomplete':
      return /cc-|one-time-code/.test(text) ? BLOCK : 0
    case 'type':
      if (text === 'hidden') return HIDDEN
      if (text === 'password') return SECRET
      if (text === 'checkbox' || text === 'radio') return CHECKABLE | TEXTLESS
      if (/^(?:submit|button|reset)$/.test(text)) return BUTTON
      return /^(?:range|color|number|date|month|week|time|datetime-local)$/.test(text)
        ? TEXTLESS
        : 0
  }
  return 0
}

/**
 * The nodes of a page by ID, with their parents and bits, so that a change can be masked by where
 * it happens.
 */
export function createNodes() {
  const nodes = new Map<number, MaskedNode>()
  let removals = 0
  const isRooted = (parentId: number | undefined) => {
    let at = parentId
    while (at !== undefined) {
      const above = nodes.get(at)
      if (!above) return false
      at = above.parentId
    }
    return true
  }

  return {
    clear() {
      nodes.clear()
      removals = 0
    },
    add(id: number, parentId: number | undefined, bits: number) {
      nodes.set(id, { parentId, bits })
    },
    /** The node's own bits, and all including its ancestors'; undefined for an unknown node. */
    find(id: number): { own: number; all: number } | undefined {
      const node = nodes.get(id)
      if (!node) return undefined
      let all = node.bits
      for (let at = node.parentId; at !== undefined; ) {
        const above = nodes.get(at)
        if (!above) return undefined
        all |= above.bits & INHERITED
        at = above.parentId
      }
      return { own: node.bits, all }
    },
    mark(id: number, bits: number, cleared = 0) {
      const node = nodes.get(id)
      if (node) node.bits = (node.bits & ~cleared) | bits
    },
    /** Removes a node. Its descendants, no longer connected to the root, are removed later. */
    remove(id: number) {
      nodes.delete(id)
      // Only after many removals, because this checks every remaining node.
      if (++removals > 1000 && removals > nodes.size) {
        removals = 0
        for (const [id, { parentId }] of nodes) if (!isRooted(parentId)) nodes.delete(id)
      }
    },
  }
}

export type Nodes = ReturnType<typeof createNodes>
