import { gzipSync } from 'node:zlib'

/** An event as rrweb records it. */
export interface RecordedEvent {
  type: number
  timestamp: number
  data: Record<string, unknown>
}

interface Node {
  type: number
  id: number
  [part: string]: unknown
}

/**
 * Returns a recording of a visitor on one page of a shop: pointer moves two thirds of the time,
 * scrolling, clicks, typing, and changes of the page after clicks. `#clock` shows the time in the
 * recording as `m:ss`, so that a test can see which moment is on the screen. It is always the same.
 */
export function longRecording(minutes: number, startedAt: number): RecordedEvent[] {
  const page = makePage()
  const events: RecordedEvent[] = [
    {
      type: 4,
      timestamp: startedAt,
      data: { href: 'https://shop.example/products', width: 1280, height: 800 },
    },
    {
      type: 2,
      timestamp: startedAt + 50,
      data: { node: page.document, initialOffset: { left: 0, top: 0 } },
    },
  ]
  const note = (at: number, data: Record<string, unknown>) =>
    events.push({ type: 3, timestamp: startedAt + at, data })
  const seconds = minutes * 60
  for (let second = 1; second < seconds; second++) {
    const at = second * 1_000
    note(at, mutation({ texts: [{ id: page.clockId, value: clockText(second) }] }))
    if (second % 3 !== 0) move(note, at, second)
    if (second % 4 === 0) {
      note(at + 600, { source: 3, id: page.documentId, x: 0, y: (second * 37) % 9_000 })
    }
    if (second % 6 === 0) click(note, at, page, second)
    if (second % 20 === 0) {
      note(at + 700, { source: 5, text: '*'.repeat((second / 20) % 9), isChecked: false, id: 9 })
    }
  }
  return events.sort((one, other) => one.timestamp - other.timestamp)
}

export function clockText(second: number): string {
  return `${Math.floor(second / 60)}:${String(second % 60).padStart(2, '0')}`
}

type NoteEvent = (at: number, data: Record<string, unknown>) => void

/** Two batches of pointer positions, one each half second as the recorder sends them. */
function move(note: NoteEvent, at: number, second: number): void {
  for (const half of [0, 500]) {
    const positions = Array.from({ length: 10 }, (_, step) => ({
      x: (second * 13 + step * 17 + half) % 1_280,
      y: (second * 7 + step * 11) % 800,
      id: 9,
      timeOffset: -450 + step * 50,
    }))
    note(at + half + 490, { source: 1, positions })
  }
}

/** A click, after which the page replaces a card and changes an attribute. */
function click(note: NoteEvent, at: number, page: Page, second: number): void {
  const index = (second / 6) % page.cards.length
  const old = page.cards[index] as Node
  const fresh = card(page, index, `drawn at ${clockText(second)}`)
  page.cards[index] = fresh
  const next = page.cards[index + 1]
  note(at + 100, { source: 2, type: 2, id: old.id, x: 300, y: 200 })
  note(
    at + 140,
    mutation({
      removes: [{ parentId: page.listId, id: old.id }],
      adds: [{ parentId: page.listId, nextId: next?.id ?? null, node: fresh }],
      attributes: [{ id: page.listId, attributes: { 'data-turn': String(second) } }],
    }),
  )
}

function mutation(part: Record<string, unknown[]>): Record<string, unknown> {
  return { source: 0, texts: [], attributes: [], removes: [], adds: [], ...part }
}

interface Page {
  document: Node
  documentId: number
  clockId: number
  listId: number
  cards: Node[]
  nextId: number
}

const cardsCount = 240

function makePage(): Page {
  const page: Page = {
    document: { type: 0, id: 1 },
    documentId: 1,
    clockId: 8,
    listId: 10,
    cards: [],
    nextId: 100,
  }
  page.cards = Array.from({ length: cardsCount }, (_, index) => card(page, index, 'as it came'))
  const rules = Array.from(
    { length: 400 },
    (_, at) => `.c${at}{margin:${at % 7}px;padding:${at % 5}px}.c${at}:hover{color:#${100 + at}}`,
  )
  const style = [{ type: 3, id: 5, textContent: rules.join('\n'), isStyle: true }]
  const clock = element(7, 'strong', { id: 'clock' }, [{ type: 3, id: 8, textContent: '0:00' }])
  const field = element(9, 'input', { type: 'search', placeholder: 'Search' }, [])
  // A copy: later changes of the cards must not change the snapshot.
  const list = element(page.listId, 'main', { class: 'c1' }, [...page.cards])
  const head = element(3, 'head', {}, [element(4, 'style', {}, style)])
  const body = element(6, 'body', {}, [clock, field, list])
  page.document = { type: 0, id: 1, childNodes: [element(2, 'html', {}, [head, body])] }
  return page
}

/** Ten nodes. */
function card(page: Page, index: number, words: string): Node {
  const id = () => page.nextId++
  const text = (textContent: string): Node => ({ type: 3, id: id(), textContent })
  return element(id(), 'article', { class: `card c${index % 400}`, 'data-sku': `s${index}` }, [
    element(id(), 'h3', {}, [text(`Product ${index}`)]),
    element(id(), 'p', { class: 'text' }, [text(`A line about it, ${words}.`)]),
    element(id(), 'a', { href: `/item/${index}?from=list` }, [text('Details')]),
    element(id(), 'button', { 'aria-label': `Add ${index}` }, [text('Add')]),
  ])
}

function element(
  id: number,
  tagName: string,
  attributes: Record<string, string>,
  childNodes: Node[],
): Node {
  return { type: 2, id, tagName, attributes, childNodes }
}

/** Returns the events as gzipped chunk bodies of ten seconds each. */
export function chunksOf(events: RecordedEvent[]): Buffer[] {
  const first = events[0]?.timestamp ?? 0
  const parts = Map.groupBy(events, ({ timestamp }) => Math.floor((timestamp - first) / 10_000))
  return Array.from(parts.values(), (part) =>
    gzipSync(part.map((event) => `${JSON.stringify(event)}\n`).join('')),
  )
}
