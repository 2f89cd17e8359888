import type { addedNodeMutation, eventWithTime, serializedNodeWithId } from '@rrweb/types'
import { expect } from 'vitest'
import { byDepth } from '../../server/test/proof/deep.ts'
import { html, isSnapshot, test, until } from './chromium.ts'

/** A node as the page has it, and as the recording tells of it. */
type Shape = string | [tag: string, attributes: [string, string][], children: Shape[]]

interface Known {
  tag: string | undefined
  attributes: Record<string, unknown>
  text: string
  children: Known[]
  parent: Known | undefined
}

/** Follows the events as a replay does. */
function treeOf(events: eventWithTime[]) {
  const nodes = new Map<number, Known>()
  let top: Known | undefined
  const create = (node: serializedNodeWithId, parent: Known | undefined): Known => {
    const known: Known = {
      tag: node.type === 2 ? node.tagName : undefined,
      attributes: node.type === 2 ? { ...node.attributes } : {},
      text: 'textContent' in node ? node.textContent : '',
      children: [],
      parent,
    }
    nodes.set(node.id, known)
    if ('childNodes' in node) known.children = node.childNodes.map((each) => create(each, known))
    return known
  }
  const detach = (known: Known | undefined) => {
    const { children = [] } = known?.parent ?? {}
    if (known && children.includes(known)) children.splice(children.indexOf(known), 1)
    if (known) known.parent = undefined
  }
  /** False where its neighbour is not there yet; one that never comes was moved on. */
  const add = ({ parentId, nextId, node }: addedNodeMutation) => {
    const parent = nodes.get(parentId)
    const next = nextId === null ? undefined : nodes.get(nextId)
    if (!parent || (nextId !== null && next?.parent !== parent)) return false
    detach(nodes.get(node.id))
    const at = next ? parent.children.indexOf(next) : parent.children.length
    parent.children.splice(at, 0, create(node, parent))
    return true
  }
  for (const event of events) {
    if (event.type === 2) top = create(event.data.node, undefined)
    if (event.type !== 3 || event.data.source !== 0) continue
    const { adds, removes, attributes, texts } = event.data
    for (const { id } of removes) detach(nodes.get(id))
    let waiting = adds
    for (let before = -1; waiting.length !== before; ) {
      before = waiting.length
      waiting = waiting.filter((each) => !add(each))
    }
    for (const { id, value } of texts) Object.assign(nodes.get(id) ?? {}, { text: value })
    for (const change of attributes) {
      const known = nodes.get(change.id)
      for (const [name, value] of Object.entries(change.attributes)) {
        if (value === null) delete known?.attributes[name]
        else if (known) known.attributes[name] = value
      }
    }
  }
  const find = (known: Known | undefined): Known | undefined =>
    known?.attributes.id === 'root' ? known : known?.children.map(find).find(Boolean)
  return shapeOf(find(top) as Known)
}

function shapeOf({ tag, attributes, text, children }: Known): Shape {
  if (!tag) return text
  const sorted = Object.entries(attributes).map(([name, value]): [string, string] => [
    name,
    `${value}`,
  ])
  return [tag, sorted.sort(), children.map(shapeOf)]
}

/** In the page: changes it in many ways, by a row of numbers that the seed decides. */
const change = `async (seed) => {
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return Math.floor((seed / 2147483648) * below)
  }
  const root = document.querySelector('#root')
  const all = () => [root, ...root.querySelectorAll('*')]
  const any = (list) => list[random(list.length)]
  const inside = () => all().slice(1)
  const create = () => {
    const tag = any(['div', 'p', 'b', 'section', 'my-part', 'form', 'svg', 'button', 'em'])
    const made = tag === 'svg'
      ? document.createElementNS('http://www.w3.org/2000/svg', any(['svg', 'g', 'path']))
      : document.createElement(tag)
    if (random(2)) made.append('text ' + random(1000))
    if (random(3) === 0) made.setAttribute('class', 'c' + random(9))
    if (random(9) === 0) made.append(document.createComment('none of it'))
    return made
  }
  const changes = [
    () => any(all()).append(create(), create()),
    () => any(all()).prepend(create()),
    () => any(inside())?.before(create(), 'between'),
    () => any(inside())?.remove(),
    () => any(inside())?.setAttribute(any(['title', 'class', 'data-x', 'href', 'style']), 'color: red' + random(9)),
    () => any(inside())?.removeAttribute(any(['title', 'class', 'data-x', 'style'])),
    () => { const one = any(inside()); if (one) one.style.setProperty(any(['width', 'margin-left']), random(99) + 'px') },
    () => { const one = any(inside()); if (one?.firstChild?.nodeType === 3) one.firstChild.data = 'other ' + random(1000) },
    () => { const one = any(inside()); if (one) one.innerHTML = '<i title="new">one</i>two<u>three</u>' },
    () => any(inside())?.replaceChildren(create(), 'last'),
    () => { const [one, other] = [any(inside()), any(inside())]
      if (one && other && one !== other && !one.contains(other)) other.append(one) },
  ]
  for (let task = 0; task < 30; task++) {
    for (let at = random(40); at > 0; at--) any(changes)()
    if (root.querySelectorAll('*').length > 300) root.lastElementChild.remove()
    await new Promise((resolve) => setTimeout(resolve, random(20)))
  }
  root.setAttribute('title', 'the end')
  const shapeOf = (node) => {
    if (node.nodeType === 3) return node.data
    const names = node.getAttributeNames().sort()
    const children = Array.from(node.childNodes).filter(({ nodeType }) => nodeType !== 8)
    return [node.localName, names.map((name) => [name, node.getAttribute(name)]), children.map(shapeOf)]
  }
  return shapeOf(root)
}`

test.concurrent.for(byDepth([1, 2, 3], [1, 2, 3, 4, 5, 6]))(
  'a page that adds, moves, removes and changes nodes is recorded as it is then, %i',
  async (seed, { lethe, site, page }) => {
    const root = '<div id="root"><p class="first">There from the start <b>with more</b></p></div>'
    site.set('/', html(lethe, root, "{ masking: 'open' }"))
    await page.goto(`${site.url}/`)
    await until(() => lethe.events().some(isSnapshot))
    const shown = await page.evaluate(`(${change})(${seed * 7919})`)
    await until(() => JSON.stringify(lethe.events()).includes('"title":"the end"'))
    expect(treeOf(lethe.events())).toEqual(shown)
  },
)
