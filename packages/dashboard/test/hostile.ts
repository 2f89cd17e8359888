/*
 * Recordings as an attacker would forge them: anybody who has read a public key off a page can send
 * any events at all. Each of them tries to run a script, make a request, or lead somewhere.
 */

export interface HostileRecording {
  name: string
  events: unknown[]
}

type Attributes = Record<string, unknown>

interface Snapshot {
  type: number
  id: number
  [part: string]: unknown
}

const startedAt = 1_700_000_000_000

/** All of them; whatever they load lies under `trap`, and whatever they run sets `__hit`. */
export function hostileRecordings(trap: string): HostileRecording[] {
  const script = `window.__hit=1;try{parent.__hit=1;top.__hit=1}catch(e){};fetch('${trap}/script')`
  return [
    ...elements(trap, script),
    ...handlers(trap, script),
    ...addresses(trap, script),
    ...styles(trap),
    ...frames(trap, script),
    ...mutations(trap, script),
    ...oddities(trap, script),
  ]
}

let lastId = 0

function el(tagName: string, attributes: Attributes = {}, ...childNodes: Snapshot[]): Snapshot {
  lastId++
  return { type: 2, id: lastId, tagName, attributes, childNodes }
}

function svg(tagName: string, attributes: Attributes = {}, ...childNodes: Snapshot[]): Snapshot {
  return { ...el(tagName, attributes, ...childNodes), isSVG: true }
}

function txt(textContent: string, isStyle = false): Snapshot {
  lastId++
  return { type: 3, id: lastId, textContent, ...(isStyle && { isStyle }) }
}

function documentOf(head: Snapshot[], body: Snapshot[]): Snapshot {
  const html = el('html', {}, el('head', {}, ...head), el('body', { id: 'body' }, ...body))
  lastId++
  const doctype = { type: 1, id: lastId, name: 'html', publicId: '', systemId: '' }
  lastId++
  return { type: 0, id: lastId, childNodes: [doctype, html] }
}

function recording(name: string, head: Snapshot[], body: Snapshot[], more: unknown[] = []) {
  return withDocument(name, documentOf(head, [txt('A page. '), ...body]), more)
}

function withDocument(name: string, node: Snapshot, more: unknown[] = []): HostileRecording {
  const events = [
    { type: 4, data: { href: 'https://shop.example/', width: 800, height: 600 } },
    { type: 2, data: { node, initialOffset: { top: 0, left: 0 } } },
    ...more,
    { type: 3, data: { source: 3, id: 1, x: 0, y: 0 } },
    { type: 3, data: { source: 1, positions: [{ x: 9, y: 9, id: 1, timeOffset: 0 }] } },
  ]
  return {
    name,
    events: events.map((event, index) => ({
      ...(event as object),
      timestamp: startedAt + index * 40,
    })),
  }
}

function inBody(name: string, ...body: Snapshot[]): HostileRecording {
  return recording(name, [], body)
}

function elements(trap: string, script: string): HostileRecording[] {
  return [
    inBody('a script with text', el('script', {}, txt(script))),
    inBody('a script with an address', el('script', { src: `${trap}/a.js` })),
    inBody('a module script', el('script', { type: 'module', src: `${trap}/m.js` })),
    inBody('a script in capitals', el('SCRIPT', {}, txt(script))),
    inBody('a script with white space in its name', el(' script ', {}, txt(script))),
    inBody('a script of SVG', svg('svg', {}, svg('script', { href: `${trap}/s.js` }, txt(script)))),
    inBody(
      'a script of SVG with a prefix',
      svg('svg', {}, svg('svg:script', { 'xlink:href': `${trap}/p.js` }, txt(script))),
    ),
    recording(
      'a base address',
      [el('base', { href: `${trap}/base/` })],
      [el('img', { src: 'x.png' })],
    ),
    recording(
      'a refresh',
      [el('meta', { 'http-equiv': 'refresh', content: `0;url=${trap}/r` })],
      [],
    ),
    recording(
      'a refresh to a script',
      [el('meta', { 'HTTP-EQUIV': 'Refresh', content: `0;url=javascript:${script}` })],
      [],
    ),
    recording(
      'a policy of its own',
      [
        el('meta', {
          'http-equiv': 'Content-Security-Policy',
          content: "script-src 'unsafe-inline'",
        }),
      ],
      [el('img', { src: `${trap}/csp.png`, onerror: script })],
    ),
    recording(
      'a preload',
      [el('link', { rel: 'preload', as: 'script', href: `${trap}/l.js` })],
      [],
    ),
    recording('a module preload', [el('link', { rel: 'modulepreload', href: `${trap}/l.js` })], []),
    recording('a prefetch', [el('link', { rel: 'prefetch', href: `${trap}/l.html` })], []),
    recording('a preconnect', [el('link', { rel: 'preconnect', href: trap })], []),
    recording('a name looked up', [el('link', { rel: 'dns-prefetch', href: trap })], []),
    recording('a style sheet', [el('link', { rel: 'stylesheet', href: `${trap}/l.css` })], []),
    recording('an icon', [el('link', { rel: 'icon', href: `${trap}/i.png` })], []),
    recording('a manifest', [el('link', { rel: 'manifest', href: `${trap}/m.json` })], []),
    recording('an HTML import', [el('link', { rel: 'import', href: `${trap}/i.html` })], []),
    inBody('an object', el('object', { data: `${trap}/o.html`, type: 'text/html' })),
    inBody(
      'an object with a script',
      el('object', { data: `data:text/html,<script>${script}</script>` }),
    ),
    inBody('an embed', el('embed', { src: `${trap}/e.html`, type: 'text/html' })),
    inBody('an applet', el('applet', { code: 'x', archive: `${trap}/a.jar` })),
    inBody('a portal', el('portal', { src: `${trap}/portal` })),
    inBody('a fenced frame', el('fencedframe', { src: `${trap}/fenced` })),
    inBody('a frame set', el('frameset', {}, el('frame', { src: `${trap}/frame` }))),
    inBody('markup in a template', el('template', {}, el('img', { src: `${trap}/t.png` }))),
    inBody('markup where scripts are off', el('noscript', {}, el('img', { src: `${trap}/n.png` }))),
    {
      ...inBody('a custom element', {
        ...el('x-evil', { is: 'x-evil', onclick: script }, txt('evil')),
        isCustom: true,
      }),
    },
    inBody('an element that is another', el('button', { is: 'x-evil', onclick: script })),
  ]
}

function handlers(trap: string, script: string): HostileRecording[] {
  return [
    inBody('an image that fails', el('img', { src: 'nowhere:', onerror: script })),
    inBody('an image that loads', el('img', { src: pixel, onload: script })),
    inBody('a handler in capitals', el('img', { src: pixel, ONLOAD: script, OnError: script })),
    inBody('a handler with a prefix', el('img', { src: pixel, 'x:onload': script })),
    inBody('an SVG that loads', svg('svg', { onload: script })),
    inBody('a video that fails', el('video', { src: 'nowhere:', onerror: script })),
    inBody('details that open', el('details', { open: '', ontoggle: script }, txt('more'))),
    inBody('a field that gets the focus', el('input', { autofocus: '', onfocus: script })),
    inBody(
      'an animation that ends',
      el('div', { style: 'animation: x 1ms', onanimationend: script }),
    ),
    inBody('the pointer', el('div', { style: covers, onpointerover: script, onclick: script })),
    inBody('a popover', el('button', { style: covers, popovertarget: 'p', onclick: script })),
    recording(
      'a body that loads',
      [],
      [],
      [{ type: 3, data: mutation({ attributes: [{ id: 0, attributes: { onload: script } }] }) }],
    ),
    inBody('an animation of SVG', svg('svg', {}, svg('animate', { onbegin: script, dur: '1s' }))),
    inBody('a ping', el('a', { style: covers, href: '#', ping: `${trap}/ping` }, txt('x'))),
  ]
}

function addresses(trap: string, script: string): HostileRecording[] {
  const link = (name: string, href: string) =>
    inBody(name, el('a', { style: covers, href }, txt('click me')))
  return [
    link('a link to a script', `javascript:${script}`),
    link('a link to a script, in disguise', `\u0001 jAvA\tscr\nipt:${script}`),
    link('a link to a page in the address', `data:text/html,<script>${script}</script>`),
    link('a link elsewhere', `${trap}/link`),
    link('a link without a scheme', trap.replace('http:', '')),
    inBody('a link to the top', el('a', { style: covers, target: '_top', href: `${trap}/top` })),
    inBody(
      'a link to a new window',
      el('a', { style: covers, target: '_blank', href: `${trap}/new` }),
    ),
    inBody('a download', el('a', { style: covers, download: 'x', href: `${trap}/file` })),
    inBody(
      'an area',
      el('map', { name: 'm' }, el('area', { shape: 'default', href: `${trap}/area` })),
    ),
    inBody(
      'a link of SVG',
      svg(
        'svg',
        { style: covers },
        svg('a', { 'xlink:href': `${trap}/a` }, svg('rect', { width: '99%', height: '99%' })),
      ),
    ),
    inBody('an image', el('img', { src: `${trap}/i.png` })),
    inBody('a set of images', el('img', { srcset: `${trap}/1.png 1x, ${trap}/2.png 2x` })),
    inBody('a picture', el('picture', {}, el('source', { srcset: `${trap}/s.png` }), el('img'))),
    inBody(
      'an image of SVG',
      svg('svg', {}, svg('image', { href: `${trap}/si.png`, width: '9', height: '9' })),
    ),
    inBody(
      'a use of SVG elsewhere',
      svg('svg', {}, svg('use', { 'xlink:href': `${trap}/u.svg#x` })),
    ),
    inBody(
      'a use of SVG in the address',
      svg(
        'svg',
        {},
        svg('use', {
          href: `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' id='x'><script>${script}</script></svg>#x`,
        }),
      ),
    ),
    inBody(
      'an SVG in an image',
      el('img', {
        src: `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='${trap}/in.png'/><script>${script}</script></svg>`,
      }),
    ),
    inBody(
      'a filter of SVG',
      svg(
        'svg',
        {},
        svg('filter', { id: 'f' }, svg('feImage', { href: `${trap}/fe.png` })),
        svg('rect', { width: '9', height: '9', filter: 'url(#f)' }),
      ),
    ),
    inBody(
      'an animated address',
      svg(
        'svg',
        {},
        svg(
          'a',
          { href: '#' },
          svg('animate', {
            attributeName: 'href',
            to: `javascript:${script}`,
            dur: '1ms',
            fill: 'freeze',
          }),
          svg('rect', { width: '99%', height: '99%' }),
        ),
      ),
    ),
    inBody(
      'an address that is set',
      svg(
        'svg',
        {},
        svg(
          'a',
          { href: '#' },
          svg('set', { attributeName: 'xlink:href', to: `${trap}/set` }),
          svg('rect', { width: '99%', height: '99%' }),
        ),
      ),
    ),
    inBody(
      'a video',
      el('video', {
        src: `${trap}/v.mp4`,
        poster: `${trap}/p.png`,
        autoplay: '',
        rr_mediaState: 'played',
      }),
    ),
    inBody(
      'sound',
      el(
        'audio',
        { rr_mediaState: 'played', autoplay: '' },
        el('source', { src: `${trap}/a.mp3` }),
      ),
    ),
    inBody('subtitles', el('video', {}, el('track', { default: '', src: `${trap}/t.vtt` }))),
    inBody('a background of old', el('table', { background: `${trap}/b.png` })),
    inBody('an image button', el('input', { type: 'image', src: `${trap}/ib.png` })),
    inBody(
      'a form',
      el('form', { action: `${trap}/form` }, el('button', { style: covers }, txt('Send'))),
    ),
    inBody(
      'a form with a script',
      el(
        'form',
        { action: `javascript:${script}` },
        el('input', { type: 'submit', style: covers }),
      ),
    ),
    inBody(
      'a button of a form',
      el('form', {}, el('button', { formaction: `${trap}/fa`, style: covers }, txt('Send'))),
    ),
    inBody('a recorded picture elsewhere', el('img', { src: 'x', rr_dataURL: `${trap}/rr.png` })),
    inBody('a canvas elsewhere', el('canvas', { rr_dataURL: `${trap}/c.png` })),
    inBody('a quotation', el('blockquote', { cite: `javascript:${script}` }, txt('said'))),
  ]
}

function styles(trap: string): HostileRecording[] {
  const sheet = (name: string, css: string) =>
    recording(name, [el('style', {}, txt(css, true))], [])
  return [
    sheet('a background', `body{background:url(${trap}/bg.png)}`),
    sheet('a background in disguise', `body{background:u\\72 l("${trap}/bg2.png")}`),
    sheet(
      'a background after a comment',
      `body{background:/*)*/url(/*${trap}/x*/${trap}/bg3.png)}`,
    ),
    sheet('an import', `@import url(${trap}/i.css);`),
    sheet('an import in disguise', `@\\69mport "${trap}/i2.css";`),
    sheet(
      'an import of many words',
      `@import "${trap}/i3.css" layer(x) supports(display:grid) screen;`,
    ),
    sheet('a font', `@font-face{font-family:x;src:url(${trap}/f.woff2)}body{font-family:x}`),
    sheet('a set of images in a sheet', `body{background:image-set("${trap}/s1.png" 1x)}`),
    sheet('an old set of images', `body{background:-webkit-image-set(url(${trap}/s2.png) 1x)}`),
    sheet('a cursor', `body{cursor:url(${trap}/cur.png),auto}`),
    sheet('a mask', `body{mask:url(${trap}/m.svg#m);filter:url(${trap}/f.svg#f)}`),
    sheet('content', `body::before{content:url(${trap}/c.png)}`),
    sheet('a variable', `:root{--u:url(${trap}/v.png)}body{background:var(--u)}`),
    sheet('an expression', `body{width:expression(alert(1));behavior:url(${trap}/b.htc)}`),
    sheet('a string that never ends', `a{content:"\n}body{background:url(${trap}/end.png)}`),
    recording(
      'a sheet that was inlined',
      [
        el('link', {
          rel: 'stylesheet',
          href: `${trap}/x.css`,
          _cssText: `body{background:url(${trap}/css.png)}`,
        }),
      ],
      [],
    ),
    inBody(
      'an inline style',
      el('div', { style: `width:9px;height:9px;background:url('${trap}/in.png')` }),
    ),
    inBody(
      'an attribute of SVG',
      svg('svg', {}, svg('rect', { width: '9', height: '9', fill: `url(${trap}/fill.svg#f)` })),
    ),
    inBody(
      'a style of SVG',
      svg(
        'svg',
        {},
        svg('style', {}, txt(`rect{fill:url(${trap}/st.svg#f)}`, true)),
        svg('rect', { width: '9', height: '9' }),
      ),
    ),
    inBody(
      'a size that is a style',
      el('div', { rr_width: `9px;background:url(${trap}/w.png)`, rr_height: '9px' }),
    ),
  ]
}

function frames(trap: string, script: string): HostileRecording[] {
  return [
    inBody('a frame', el('iframe', { src: `${trap}/frame` })),
    inBody('a frame recorded as another', el('iframe', { rr_src: `${trap}/frame2` })),
    inBody(
      'a frame with markup',
      el('iframe', { srcdoc: `<script>${script}</script><img src='${trap}/srcdoc.png'>` }),
    ),
    inBody('a frame that loads', el('iframe', { onload: script })),
    inBody('a frame with a script', el('iframe', { src: `javascript:${script}` })),
    inBody(
      'a frame without a sandbox',
      el('iframe', {
        sandbox: 'allow-scripts allow-top-navigation',
        srcdoc: `<script>${script}</script>`,
      }),
    ),
    frameWithin(trap, script),
  ]
}

/** A frame whose document is attached later, as rrweb does with frames it could look into. */
function frameWithin(trap: string, script: string): HostileRecording {
  const frame = el('iframe')
  const node = documentOf(
    [el('script', {}, txt(script))],
    [
      el('img', { src: `${trap}/within.png`, onerror: script }),
      el('iframe', { src: `${trap}/deep` }),
    ],
  )
  return recording(
    'a document in a frame',
    [],
    [frame],
    [
      {
        type: 3,
        data: {
          ...mutation({ adds: [{ parentId: frame.id, nextId: null, node }] }),
          isAttachIframe: true,
        },
      },
    ],
  )
}

function mutation(parts: Record<string, unknown>) {
  return { source: 0, adds: [], removes: [], texts: [], attributes: [], ...parts }
}

function mutations(trap: string, script: string): HostileRecording[] {
  const link = el('a', { style: covers, href: '#' }, txt('x'))
  const image = el('img', { src: pixel })
  const css = txt('body{color:red}', true)
  const sheet = el('style', {}, css)
  const box = el('div', { style: 'width:9px;height:9px' })
  const body = el('div')
  const added = (node: Snapshot) => ({
    type: 3,
    data: mutation({ adds: [{ parentId: body.id, nextId: null, node }] }),
  })
  const changed = (id: number, attributes: Attributes) => ({
    type: 3,
    data: mutation({ attributes: [{ id, attributes }] }),
  })
  const style = (source: number, more: object) => ({
    type: 3,
    data: { source, id: sheet.id, ...more },
  })
  return [
    recording('a script that comes later', [], [body], [added(el('script', {}, txt(script)))]),
    ...declaredTwice(trap, script),
    recording(
      'an image that comes later',
      [],
      [body],
      [added(el('img', { src: `${trap}/later.png`, onerror: script }))],
    ),
    recording(
      'a frame that comes later',
      [],
      [body],
      [added(el('iframe', { srcdoc: `<script>${script}</script>`, src: `${trap}/lf` }))],
    ),
    recording(
      'a link that changes',
      [],
      [link],
      [changed(link.id, { href: `javascript:${script}` })],
    ),
    recording(
      'an image that changes',
      [],
      [image],
      [changed(image.id, { src: `${trap}/changed.png`, onload: script })],
    ),
    recording(
      'a style that changes',
      [],
      [box],
      [changed(box.id, { style: { background: `url(${trap}/cs.png)` } })],
    ),
    recording(
      'a style text that changes',
      [],
      [box],
      [changed(box.id, { style: `background:url(${trap}/ct.png)` })],
    ),
    recording(
      'a sheet’s text that changes',
      [sheet],
      [],
      [
        {
          type: 3,
          data: mutation({
            texts: [{ id: css.id, value: `body{background:url(${trap}/tx.png)}` }],
          }),
        },
      ],
    ),
    recording(
      'a sheet that is replaced',
      [sheet],
      [],
      [changed(sheet.id, { _cssText: `body{background:url(${trap}/rp.png)}` })],
    ),
    recording(
      'a rule that is added',
      [sheet],
      [],
      [style(8, { adds: [{ rule: `body{background:url(${trap}/rule.png)}`, index: 0 }] })],
    ),
    recording(
      'a sheet that is set',
      [sheet],
      [],
      [style(8, { replaceSync: `body{background:url(${trap}/set.png)}` })],
    ),
    recording(
      'a declaration',
      [sheet],
      [],
      [style(13, { index: [0], set: { property: 'background', value: `url(${trap}/decl.png)` } })],
    ),
    recording(
      'an adopted sheet',
      [],
      [],
      [
        {
          type: 3,
          data: {
            source: 15,
            id: 1,
            styleIds: [1],
            styles: [
              { styleId: 1, rules: [{ rule: `body{background:url(${trap}/ad.png)}`, index: 0 }] },
            ],
          },
        },
      ],
    ),
    recording(
      'a font that is named',
      [],
      [],
      [
        {
          type: 3,
          data: { source: 10, family: 'x', buffer: false, fontSource: `url(${trap}/font.woff2)` },
        },
      ],
    ),
    recording(
      'canvas commands',
      [],
      [el('canvas')],
      [
        {
          type: 3,
          data: {
            source: 9,
            id: lastId,
            type: 0,
            property: 'drawImage',
            args: [{ rr_type: 'Image', src: `${trap}/ci.png` }],
          },
        },
      ],
    ),
    recording(
      'a custom element defined',
      [],
      [],
      [{ type: 3, data: { source: 16, define: { name: 'x-evil' } } }],
    ),
    recording(
      'an event of the page’s own',
      [],
      [],
      [
        {
          type: 5,
          data: { tag: `<img src=${trap}/tag.png>`, payload: { href: `javascript:${script}` } },
        },
      ],
    ),
  ]
}

function oddities(trap: string, script: string): HostileRecording[] {
  let deep = el('img', { src: `${trap}/deep.png`, onerror: script })
  for (let depth = 0; depth < 1_500; depth++) deep = el('div', {}, deep)
  return [
    inBody('a tree deeper than any', deep),
    inBody(
      'names of the prototype',
      el('constructor', { __proto__x: '1' }),
      el('__proto__'),
      el('div', JSON.parse(`{"__proto__":{"src":"${trap}/proto.png"},"constructor":"x"}`)),
    ),
    inBody(
      'attributes that are no texts',
      el('img', { src: { toString: 'x' }, alt: ['a'], width: 1e9, height: -1 }),
    ),
    inBody('a shadow where none may be', {
      ...el('img', { src: `${trap}/sh.png` }),
      isShadowHost: true,
    }),
    recording(
      'sizes beyond all screens',
      [],
      [],
      [
        { type: 3, data: { source: 4, width: 1e12, height: 'x' } },
        { type: 4, data: { href: `javascript:${script}`, width: 1e12, height: 1e12 } },
      ],
    ),
    recording(
      'events that are none',
      [],
      [],
      [
        null,
        7,
        { type: 3 },
        { type: 3, data: { source: 1, positions: [] } },
        { type: 2, data: { node: { type: 2, id: 1 } } },
        { type: 3, data: { source: 2, type: 999, id: 1 } },
      ].map((event) => event ?? {}),
    ),
    withDocument(
      'a document in an element',
      documentOf([], [{ ...documentOf([], [el('img', { src: `${trap}/dd.png` })]) }]),
    ),
    inBody(
      'a page that looks like a sign-in',
      el(
        'form',
        { action: `${trap}/phish`, method: 'post' },
        el('input', { type: 'password', name: 'password' }),
        el('button', { style: covers }, txt('Sign in')),
      ),
    ),
  ]
}

const pixel = 'data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'

/** Lies over the whole page: a click anywhere is a click on it. */
const covers = 'position:fixed;inset:0;z-index:9;display:block;width:100%;height:100%'

/** What a mutation may do depends on what its target is: ids that say two things of one node. */
function declaredTwice(trap: string, script: string): HostileRecording[] {
  const body = el('div')
  const add = (parentId: number, node: Snapshot) => ({ parentId, nextId: null, node })
  const adds = (...list: object[]) => ({ type: 3, data: mutation({ adds: list }) })
  const sheet = el('style')
  const rules = `body{background:url(${trap}/early.png)}`
  const image = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" onload="${script}"/>`)}`
  const frame = el('iframe')
  const nowhere = 9_999_999
  return [
    recording(
      'a text before its style sheet',
      [],
      [body],
      [adds(add(sheet.id, txt(rules))), adds(add(body.id, sheet))],
    ),
    recording(
      'a text beside its style sheet, in the wrong order',
      [],
      [body],
      [adds(add(sheet.id, txt(rules)), add(body.id, sheet))],
    ),
    recording(
      'a style sheet declared again as a box that is never built',
      [],
      [body, sheet],
      [adds(add(nowhere, { ...el('div'), id: sheet.id })), adds(add(sheet.id, txt(rules)))],
    ),
    recording(
      'a frame declared again as a picture',
      [],
      [body, frame],
      [
        adds(add(nowhere, { ...el('img'), id: frame.id })),
        {
          type: 3,
          data: mutation({ attributes: [{ id: frame.id, attributes: { src: image } }] }),
        },
      ],
    ),
    {
      ...recording('a page that is played before the one it came after', [], [body, frame]),
      events: outOfOrder(body, frame, image),
    },
  ]
}

/** Events whose order of arrival is not that of their times. */
function outOfOrder(body: Snapshot, frame: Snapshot, image: string): unknown[] {
  const { events } = recording('', [], [body, frame])
  const other = recording('', [], [{ ...el('img'), id: frame.id }]).events[1] as object
  return [
    ...events.slice(0, 2),
    { ...other, timestamp: startedAt + 900 },
    {
      type: 3,
      data: mutation({ attributes: [{ id: frame.id, attributes: { src: image } }] }),
      timestamp: startedAt + 100,
    },
    ...events.slice(2).map((event) => ({ ...(event as object), timestamp: startedAt + 950 })),
  ]
}
