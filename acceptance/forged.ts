import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Lethe } from './lethe.ts'

/* Recordings as anybody can send them with the public key that stands in every page. */

const startedAt = 1_700_000_000_000

export type Node = { type: number; id: number; [part: string]: unknown }

let lastId = 0
export const el = (tagName: string, attributes: object = {}, ...childNodes: Node[]): Node => ({
  type: 2,
  id: ++lastId,
  tagName,
  attributes,
  childNodes,
})
export const txt = (textContent: string): Node => ({ type: 3, id: ++lastId, textContent })

export function page(head: Node[], body: Node[]): object[] {
  const html = el('html', {}, el('head', {}, ...head), el('body', {}, ...body))
  const node = { type: 0, id: ++lastId, childNodes: [html] }
  return [
    { type: 4, data: { href: 'https://shop.example/', width: 1200, height: 800 } },
    { type: 2, data: { node, initialOffset: { top: 0, left: 0 } } },
  ]
}

/** Sends a session of these tabs as the SDK would; returns its id. */
export async function send(lethe: Lethe, tabs: Timed[][]): Promise<string> {
  return (await sendAs(lethe, null, tabs)).sessionId
}

/** A visit of one page, in which its button was clicked; by nobody, or by who was identified. */
export async function visit(lethe: Lethe, userId: string | null): Promise<{ browserId: string }> {
  const button = el('button', {}, txt('Add to basket'))
  const events = page([], [el('h1', {}, txt('Fennel & Fig')), button])
  const click = { type: 3, data: { source: 2, type: 2, id: button.id, x: 1, y: 1 } }
  return sendAs(lethe, userId, [spaced([...events, click], 500)])
}

async function sendAs(lethe: Lethe, userId: string | null, tabs: Timed[][]) {
  const key = lethe.publicKey
  const post = async (path: string, query: object, body: Uint8Array<ArrayBuffer> | string) => {
    const parameters = new URLSearchParams({ key, ...query })
    const answer = await fetch(`${lethe.url}/ingest/v1/${path}?${parameters}`, {
      method: 'POST',
      body,
    })
    const text = await answer.text()
    expect(answer.status, text).toBe(200)
    return JSON.parse(text)
  }
  const { browserId, sessionId } = await post(
    'start',
    {},
    JSON.stringify({ url: 'https://shop.example/' }),
  )
  if (userId !== null) await post('identify', {}, JSON.stringify({ browserId, userId }))
  for (const [tab, events] of tabs.entries()) {
    let lines: string[] = []
    let size = 0
    let number = 0
    const flush = async () => {
      const place = { browser: browserId, session: sessionId, tab: `t${tab}` }
      await post('chunks', { ...place, number: String(number++) }, gzipSync(lines.join('\n')))
      lines = []
      size = 0
    }
    for (const [at, event] of events) {
      const line = JSON.stringify({ ...event, timestamp: startedAt + at })
      lines.push(line)
      size += line.length
      if (size > 4_000_000) await flush()
    }
    await flush()
  }
  return { browserId, sessionId }
}

/** An event, and how many milliseconds after the beginning it was. */
export type Timed = readonly [at: number, event: object]

/** One after the other. */
export const spaced = (events: object[], milliseconds: number): Timed[] =>
  events.map((event, index) => [index * milliseconds, event])
