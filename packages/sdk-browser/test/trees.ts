import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { eventWithTime } from '@rrweb/types'
import type { Page } from 'playwright-core'

/** What a document or a part of it shows, as text, through shadow roots and frames. */
export const treeOf = `(root) => {
  const isOurs = (name) => !/^(rr_|data-rr-|data-lethe-popover|_)/.test(name)
  const css = (sheet) => Array.from(sheet.cssRules, (rule) => rule.cssText).join(' ')
  const line = (depth, text) => '  '.repeat(depth) + text + '\\n'
  const show = (node, depth) => {
    if (node.nodeType === 3) return node.data && line(depth, JSON.stringify(node.data))
    if (node.nodeType !== 1) return ''
    const names = node.getAttributeNames().filter(isOurs).sort()
    const state = [
      node.open && node.matches('dialog:modal') && ' (modal)',
      node.popover && node.matches(':popover-open, [data-lethe-popover]') && ' (popover)',
    ].filter(Boolean).join('')
    let text = line(depth, '<' + node.localName + names.map((name) => ' ' + name + '=' + node.getAttribute(name)).join('') + '>' + state)
    if (node.localName === 'style') return text + line(depth + 1, css(node.sheet ?? { cssRules: [] }))
    if (node.shadowRoot) {
      text += line(depth + 1, '#shadow ' + Array.from(node.shadowRoot.adoptedStyleSheets, css).join(' | '))
      text += Array.from(node.shadowRoot.childNodes, (each) => show(each, depth + 2)).join('')
    }
    if (node.localName === 'iframe') {
      const inside = node.contentDocument
      if (!inside) return text
      text += line(depth + 1, '#document ' + Array.from(inside.adoptedStyleSheets, css).join(' | '))
      return text + (inside.body ? show(inside.body, depth + 2) : '')
    }
    return text + Array.from(node.childNodes, (each) => show(each, depth + 1)).join('')
  }
  return show(root, 0)
}`

/**
 * In the page: changes what is in an element in many ways, by a row of numbers that the seed
 * decides. Returns what it did, task by task.
 */
export const change = `async (root, seed, steps, names) => {
  seed = (seed * 7919 + 11) % 2147483648
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return Math.floor((seed / 2147483648) * below)
  }
  const any = (list) => list[random(list.length)]
  let count = 0
  /** Elements and shadow roots in the page, through shadow roots and frames, and those taken out. */
  const out = []
  const walk = (node, into) => {
    into.push(node)
    if (node.shadowRoot) walk(node.shadowRoot, into)
    if (node.localName === 'iframe') { if (node.contentDocument?.body) walk(node.contentDocument.body, into) }
    else for (const child of node.children) walk(child, into)
    return into
  }
  const all = () => [root, ...out].flatMap((each) => walk(each, []))
  const elements = () => all().filter((each) => each.nodeType === 1 && each !== root && each.localName !== 'body')
  const places = () => all().filter(({ localName }) => !/^(style|iframe|path|template)$/.test(localName ?? ''))
  const hosts = () => elements().filter((each) => !each.shadowRoot && /^(div|p|section|span|x-part)$/.test(each.localName))
  const roots = () => all().filter((each) => each.nodeType === 11 && each.host)
  const create = (of = document) => {
    const tag = any(['div', 'div', 'p', 'span', 'x-part', 'x-part', 'b', 'slot', 'style', 'svg'])
    if (tag === 'style') {
      const style = of.createElement('style')
      style.textContent = '.c' + random(9) + ' { color: rgb(1, 2, ' + random(99) + '); }'
      return style
    }
    const made = tag === 'svg' ? of.createElementNS('http://www.w3.org/2000/svg', any(['svg', 'g', 'path'])) : of.createElement(tag)
    made.setAttribute('class', 'n' + count++)
    if (random(2) && tag !== 'svg') made.append('text ' + random(1000))
    if (random(4) === 0) made.setAttribute('slot', any(['a', 'b']))
    if (tag === 'slot' && random(2)) made.setAttribute('name', any(['a', 'b']))
    return made
  }
  const inside = () => any([
    () => '<p>in <b>it</b></p><slot></slot>', () => '<style>p { top: ' + random(99) + 'px; }</style><p>styled</p>',
    () => '<div><x-part><i>deep</i></x-part></div>', () => '', () => 'only text',
  ])()
  const sheetOf = (of) => {
    const sheet = new of.defaultView.CSSStyleSheet()
    sheet.replaceSync('.c' + random(9) + ' { color: rgb(3, 4, ' + random(99) + '); }')
    return sheet
  }
  const put = (place, node) => {
    if (place && node && !node.contains(place) && !(place.getRootNode({ composed: true }) === node)) {
      // Through shadow roots too a node may not come into itself.
      for (let at = place; at; at = at.parentNode ?? at.host) if (at === node) return
      const before = random(2) ? any([...place.childNodes, null]) : null
      place.insertBefore(node, before)
      const index = out.indexOf(node)
      if (index >= 0) out.splice(index, 1)
    }
  }
  const attach = (host) => {
    if (!host) return
    const shadow = host.attachShadow({ mode: 'open', clonable: random(2) === 0 })
    if (random(3)) shadow.innerHTML = inside()
    if (random(3) === 0) shadow.adoptedStyleSheets = [sheetOf(host.ownerDocument)]
  }
  const ops = {
    add: () => put(any(places()), create()),
    addMany: () => { const place = any(places()); for (let i = 0; i < 3; i++) put(place, create()) },
    remove: () => { const one = any(elements()); if (one && !out.includes(one) && one.localName !== 'iframe') { one.remove(); if (random(2) && !one.querySelector('iframe')) out.push(one) } },
    restore: () => put(any(places()), any(out)),
    move: () => { const one = any(elements()); if (one && one.localName !== 'iframe' && !one.querySelector('iframe')) put(any(places()), one) },
    attribute: () => any(elements())?.setAttribute(any(['title', 'class', 'data-x']), 'v' + random(3)),
    unattribute: () => any(elements())?.removeAttribute(any(['title', 'data-x'])),
    text: () => { const one = any(elements()); if (one?.firstChild?.nodeType === 3 && one.localName !== 'style') one.firstChild.data = 'other ' + random(1000) },
    html: () => { const one = any(elements()); if (one && !one.querySelector('iframe') && !/^(style|iframe|svg|g|path)$/.test(one.localName)) one.innerHTML = inside() },
    attach: () => attach(any(hosts())),
    attachNew: () => { const host = document.createElement(any(['x-part', 'div'])); if (random(2)) attach(host); put(any(places()), host); if (!host.shadowRoot) attach(host) },
    rootHtml: () => { const one = any(roots()); if (one && !one.querySelector('iframe')) one.innerHTML = inside() },
    rootAdd: () => put(any(roots()), create()),
    rootReplace: () => { const one = any(roots()); if (one && !one.querySelector('iframe')) one.replaceChildren(create(), 'last') },
    rootMove: () => { const one = any(roots()); const child = one && any([...one.children]); if (child && child.localName !== 'iframe' && !child.querySelector('iframe')) put(any(places()), child) },
    hostMove: () => { const host = any(roots())?.host; if (host && !host.querySelector('iframe') && !host.shadowRoot.querySelector('iframe')) put(any(places()), host) },
    hostBack: () => { const host = any(roots())?.host; const { parentNode } = host ?? {}; if (parentNode && !host.querySelector('iframe')) { host.remove(); put(any([...host.shadowRoot.children, ...hosts()]) ?? host.shadowRoot, create()); put(parentNode, host) } },
    clone: () => { const host = any(roots())?.host; if (host && !host.querySelector('iframe')) put(any(places()), host.cloneNode(true)) },
    declare: () => { const one = any(elements()); if (one?.setHTMLUnsafe && !one.querySelector('iframe') && !/^(style|iframe|svg|g|path)$/.test(one.localName)) one.setHTMLUnsafe('<div><template shadowrootmode="open"><u>declared</u><slot></slot></template>light</div>') },
    adopt: () => { const one = any(roots()); if (one) one.adoptedStyleSheets = any([[], [sheetOf(one.ownerDocument)], [...one.adoptedStyleSheets, sheetOf(one.ownerDocument)]]) },
    adoptPush: () => { const one = any(roots()); if (one) one.adoptedStyleSheets.push(sheetOf(one.ownerDocument)) },
    rule: () => { const one = any(roots()); one?.adoptedStyleSheets[0]?.insertRule('.r { width: ' + random(99) + 'px; }') },
    frame: () => {
      if (all().filter(({ localName }) => localName === 'iframe').length > 1) return
      const frame = document.createElement('iframe'); root.append(frame); frame.contentDocument.body.append('in the frame')
    },
    fromFrame: () => { const frame = root.querySelector('iframe'); put(any(places()), any([...(frame?.contentDocument?.body.children ?? [])])) },
    toFrame: () => { const frame = root.querySelector('iframe'); const one = any(elements()); if (frame && one && one.localName !== 'iframe' && !one.querySelector('iframe')) put(frame.contentDocument.body, one) },
    details: () => { const made = document.createElement('details'); made.innerHTML = '<summary>s</summary>more'; made.open = random(2) === 0; put(any(places()), made) },
    detailsOpen: () => { const one = any(root.querySelectorAll('details')); if (one) one.open = !one.open },
    dialog: () => { const made = document.createElement('dialog'); made.append('in a dialog'); put(any(places()), made); if (made.isConnected && random(2)) made[any(['show', 'showModal'])]() },
    dialogShow: () => { const one = any(root.querySelectorAll('dialog')); if (one?.open) one.close(); else if (one?.isConnected) one[any(['show', 'showModal'])]() },
    popover: () => { const made = document.createElement('div'); made.popover = 'manual'; made.append('over'); put(any(places()), made); if (made.isConnected && random(2)) made.showPopover() },
    popoverShow: () => { const one = any(root.querySelectorAll('[popover]')); if (one?.isConnected) one.togglePopover() },
    template: () => { const made = document.createElement('template'); made.innerHTML = '<p>inert</p>'; put(any(places()), made) },
    fromTemplate: () => { const one = any(root.querySelectorAll('template')); if (one) put(any(places()), one.content.cloneNode(true)) },
    replaceWith: () => { const one = any(elements()); if (one?.parentNode && !out.includes(one) && one.localName !== 'iframe' && !one.querySelector('iframe')) one.replaceWith(create(), 'instead') },
    wrap: () => { const one = any(elements()); if (one?.parentNode && !out.includes(one) && one.localName !== 'iframe' && !one.querySelector('iframe')) { const made = document.createElement('section'); one.replaceWith(made); made.append(one) } },
  }
  const log = []
  for (let step = 0; step < steps; ) {
    for (let at = random(6); at >= 0 && step < steps; at--, step++) {
      const name = any(names ?? Object.keys(ops))
      log.push(name)
      try { ops[name]() } catch (error) { if (!(error instanceof DOMException)) throw error }
    }
    log.push('|')
    if (elements().length > 80) { root.replaceChildren(); out.length = 0 }
    const wait = random(4)
    if (wait === 1) await null
    else if (wait) await new Promise((resolve) => setTimeout(resolve, random(12)))
  }
  return log.join(' ')
}`

const structure =
  words(`add addMany remove restore move attribute unattribute text html replaceWith wrap
  attach attachNew rootHtml rootAdd rootReplace rootMove hostMove hostBack clone declare`)

/** What the page does, by what it is about. */
export const kinds = {
  'shadow roots': structure,
  frames: [...structure, ...words('frame toFrame fromFrame toFrame')],
  'adopted style sheets': [...structure, ...words('adopt adoptPush rule adopt adoptPush')],
  'templates, details, dialogs and popovers': [
    ...structure,
    ...words('template fromTemplate details detailsOpen dialog dialogShow popover popoverShow'),
  ],
}

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}

const replayFile = createRequire(import.meta.url).resolve('@rrweb/replay')
/** The player that the dashboard uses, as a script. */
export const playerScript = () => readFile(join(replayFile, '..', 'replay.umd.min.cjs'), 'utf8')

export const ways = ['at once', 'in steps', 'without its virtual document'] as const

/** What the player shows at the end: sought in one go, in many, and without its virtual document. */
export async function replayed(
  player: Page,
  events: eventWithTime[],
  way: (typeof ways)[number],
  selector = 'body',
): Promise<string[]> {
  return await player.evaluate(
    async ({ text, way, treeOf, selector }) => {
      const events: eventWithTime[] = JSON.parse(text)
      document.body.replaceChildren()
      // biome-ignore lint/suspicious/noExplicitAny: the player as a global
      const { Replayer } = (globalThis as any).rrwebReplay ?? (globalThis as any).rrweb
      const quiet = { log() {}, warn() {} }
      const replayer = new Replayer(events, {
        mouseTail: false,
        triggerFocus: false,
        showWarning: false,
        logger: quiet,
        useVirtualDom: way !== 'without its virtual document',
      })
      const end = (events.at(-1)?.timestamp ?? 0) - (events[0]?.timestamp ?? 0) + 1
      if (way === 'in steps') for (let at = 0; at < end; at += 7) replayer.pause(at)
      replayer.pause(end)
      await new Promise((resolve) => setTimeout(resolve, 50))
      const page = replayer.iframe.contentDocument as Document
      // biome-ignore lint/security/noGlobalEval: the same for page and replay
      const show = eval(treeOf)
      const shown = Array.from(page.querySelectorAll(selector), (each) => show(each))
      replayer.destroy()
      return shown
    },
    { text: JSON.stringify(events), way, treeOf, selector },
  )
}
