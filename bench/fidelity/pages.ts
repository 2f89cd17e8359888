/** A page of somebody else's library, and what a visitor does on it. */
export interface FidelityPage {
  name: string
  /** Inside `<head>`: its sheets and scripts, from `/node_modules/…` beside this file. */
  head?: string
  body: string
  /** A module that is bundled, where the library wants that. */
  module?: string
  /** Each step is followed by a picture; CSS selectors to click, or a script to run in the page. */
  steps: (string | { run: string })[]
}

const css = (path: string) => `<link rel="stylesheet" href="/node_modules/${path}">`
const script = (path: string) => `<script src="/node_modules/${path}"></script>`

const react = `
  import { createElement as h, useState } from 'react'
  import { createRoot } from 'react-dom/client'
  const mount = (App) => createRoot(document.getElementById('app')).render(h(App))`

export const pages: FidelityPage[] = [
  {
    name: 'bootstrap dark',
    head: css('bootstrap/dist/css/bootstrap.min.css'),
    body: `<script>document.documentElement.dataset.bsTheme = 'dark'</script>
      <nav class="navbar bg-body-tertiary"><div class="container"><a class="navbar-brand">Shop</a></div></nav>
      <main class="container py-3"><h1>Orders</h1>
      <div class="alert alert-warning">Something needs your attention</div>
      <div class="accordion" id="a"><div class="accordion-item"><h2 class="accordion-header">
      <button class="accordion-button" data-bs-toggle="collapse" data-bs-target="#c">Details</button></h2>
      <div id="c" class="accordion-collapse collapse show"><div class="accordion-body">Body of it</div></div></div></div>
      <button id="open" class="btn btn-primary mt-3" data-bs-toggle="modal" data-bs-target="#m">Open</button>
      <div class="progress mt-3"><div class="progress-bar" style="width:40%">40%</div></div>
      <table class="table table-striped mt-3"><tbody><tr><td>One</td><td>1</td></tr><tr><td>Two</td><td>2</td></tr></tbody></table>
      <div class="modal" id="m"><div class="modal-dialog"><div class="modal-content"><div class="modal-body">In a modal</div></div></div></div>
      </main>${script('bootstrap/dist/js/bootstrap.bundle.min.js')}`,
    steps: ['.accordion-button', '#open'],
  },
  {
    name: 'antd',
    body: '<div id="app"></div>',
    module: `${react}
      import { Button, Card, Tabs, Table, Tag, Progress, Switch, Alert, Steps, Collapse, ConfigProvider } from 'antd'
      const rows = [1, 2, 3].map((key) => ({ key, name: 'Row ' + key, age: key * 10 }))
      mount(function App() {
        const [count, setCount] = useState(0)
        return h(ConfigProvider, null, h(Card, { title: 'Orders' },
          h(Steps, { current: 1, items: ['Cart', 'Pay', 'Done'].map((title) => ({ title })) }),
          h(Tabs, { items: ['One', 'Two'].map((key) => ({ key, label: key, children: 'Content of ' + key })) }),
          h(Table, { pagination: false, dataSource: rows, columns: [{ title: 'Name', dataIndex: 'name' }, { title: 'Age', dataIndex: 'age' }] }),
          h(Progress, { percent: 30 + count * 20 }), h(Switch, { defaultChecked: true }), h(Tag, { color: 'blue' }, 'tag'),
          h(Alert, { title: 'Saved ' + count, type: 'success' }),
          h(Button, { id: 'more', type: 'primary', onClick: () => setCount(count + 1) }, 'More')))
      })`,
    steps: ['.ant-tabs-tab:nth-child(2)', '#more'],
  },
  {
    name: 'mui',
    body: '<div id="app"></div>',
    module: `${react}
      import { AppBar, Toolbar, Typography, Button, Card, CardContent, Tabs, Tab, LinearProgress, Chip, Accordion, AccordionSummary, AccordionDetails, Rating, Dialog, DialogTitle } from '@mui/material'
      mount(function App() {
        const [tab, setTab] = useState(0)
        const [open, setOpen] = useState(false)
        return h('div', null, h(AppBar, { position: 'static' }, h(Toolbar, null, h(Typography, { variant: 'h6' }, 'Shop'))),
          h(Tabs, { value: tab, onChange: (_, value) => setTab(value) }, h(Tab, { label: 'One', id: 'one' }), h(Tab, { label: 'Two', id: 'two' })),
          h(Card, { sx: { m: 2 } }, h(CardContent, null, 'Tab ' + tab, h(LinearProgress, { variant: 'determinate', value: 60 }), h(Chip, { label: 'chip', color: 'primary' }))),
          h(Accordion, { defaultExpanded: true }, h(AccordionSummary, null, 'Summary'), h(AccordionDetails, null, 'Details')),
          h(Rating, { value: 3, readOnly: true }),
          h(Button, { id: 'open', variant: 'contained', disableRipple: true, onClick: () => setOpen(true) }, 'Open'),
          h(Dialog, { open, transitionDuration: 0 }, h(DialogTitle, null, 'In a dialog')))
      })`,
    steps: ['#two', '#open'],
  },
  {
    name: 'shoelace',
    head: css('@shoelace-style/shoelace/dist/themes/dark.css'),
    body: `<script>document.documentElement.className = 'sl-theme-dark'</script>
      <style>body{background:#1a1a1e;color:#eee;font-family:sans-serif;padding:20px}</style>
      <sl-tab-group><sl-tab slot="nav" panel="a">General</sl-tab><sl-tab slot="nav" panel="b">Custom</sl-tab>
      <sl-tab-panel name="a">This is general</sl-tab-panel><sl-tab-panel name="b">This is custom</sl-tab-panel></sl-tab-group>
      <sl-button variant="primary" id="go">Primary</sl-button> <sl-button variant="danger" outline>Danger</sl-button>
      <sl-badge variant="success">ok</sl-badge> <sl-progress-bar value="50"></sl-progress-bar>
      <sl-details summary="More" open>Inside</sl-details><sl-card class="c">A card</sl-card>
      <sl-alert variant="warning" open>Careful</sl-alert><sl-switch checked>On</sl-switch>`,
    module: `
      import '@shoelace-style/shoelace/dist/components/tab-group/tab-group.js'
      import '@shoelace-style/shoelace/dist/components/tab/tab.js'
      import '@shoelace-style/shoelace/dist/components/tab-panel/tab-panel.js'
      import '@shoelace-style/shoelace/dist/components/button/button.js'
      import '@shoelace-style/shoelace/dist/components/badge/badge.js'
      import '@shoelace-style/shoelace/dist/components/progress-bar/progress-bar.js'
      import '@shoelace-style/shoelace/dist/components/details/details.js'
      import '@shoelace-style/shoelace/dist/components/card/card.js'
      import '@shoelace-style/shoelace/dist/components/alert/alert.js'
      import '@shoelace-style/shoelace/dist/components/switch/switch.js'`,
    steps: ['sl-tab[panel=b]', { run: "document.querySelector('sl-button').variant = 'success'" }],
  },
  {
    name: 'material-web',
    body: `<style>body{font-family:sans-serif;padding:20px}</style>
      <md-filled-button id="go">Filled</md-filled-button> <md-outlined-button>Outlined</md-outlined-button>
      <md-linear-progress value="0.5"></md-linear-progress>
      <md-list><md-list-item>One</md-list-item><md-divider></md-divider><md-list-item type="button">Two</md-list-item></md-list>
      <md-tabs><md-primary-tab>Video</md-primary-tab><md-primary-tab id="second">Photos</md-primary-tab></md-tabs>
      <md-chip-set><md-assist-chip label="Assist"></md-assist-chip></md-chip-set>`,
    module: `
      import '@material/web/button/filled-button.js'
      import '@material/web/button/outlined-button.js'
      import '@material/web/progress/linear-progress.js'
      import '@material/web/list/list.js'
      import '@material/web/list/list-item.js'
      import '@material/web/divider/divider.js'
      import '@material/web/tabs/tabs.js'
      import '@material/web/tabs/primary-tab.js'
      import '@material/web/chips/chip-set.js'
      import '@material/web/chips/assist-chip.js'`,
    steps: ['#second', { run: "document.querySelector('md-linear-progress').value = 0.9" }],
  },
  {
    name: 'lit',
    body: '<my-counter start="3" variant="warm"></my-counter><my-counter></my-counter>',
    module: `
      import { LitElement, html, css } from 'lit'
      class Counter extends LitElement {
        static properties = { start: { type: Number }, variant: { reflect: true }, open: { type: Boolean, reflect: true } }
        static styles = css\`:host{display:block;padding:20px;font:16px sans-serif} :host([variant=warm]){background:#fdd}
          :host([open]) .more{display:block} .more{display:none;color:#093}\`
        render() { return html\`<button @click=\${() => { this.start++; this.open = true }}>Count \${this.start ?? 0}</button><p class="more">It is open</p>\` }
      }
      customElements.define('my-counter', Counter)`,
    steps: [
      'my-counter:nth-child(1)',
      { run: "document.querySelectorAll('my-counter')[1].open = true" },
    ],
  },
  {
    name: 'vue',
    body: '<div id="app"></div>',
    head: '<style>[data-state=done]{text-decoration:line-through;color:#999}.v-enter-active{opacity:1}</style>',
    module: `
      import { createApp, h, ref } from 'vue'
      createApp({ setup() {
        const items = ref(['Apples', 'Pears', 'Plums'].map((text) => ({ text, done: false })))
        return () => h('main', { style: 'font:18px sans-serif;padding:20px' }, [h('h1', 'To buy'),
          h('ul', items.value.map((item, at) => h('li', { id: 'i' + at, 'data-state': item.done ? 'done' : 'open', onClick: () => { item.done = !item.done } }, item.text)))])
      } }).mount('#app')`,
    steps: ['#i1', '#i2'],
  },
  {
    name: 'svelte',
    body: '<div id="app"></div>',
    head: '<style>.svelte-x1{background:#eef;padding:20px;font:18px sans-serif}[aria-current=true]{color:#c00}</style>',
    module: `
      import { mount } from 'svelte'
      import * as $ from 'svelte/internal/client'
      const root = $.from_html('<div class="svelte-x1"><h1>Svelte</h1><button id="b">Count</button><p aria-current="false"></p></div>')
      function App(anchor) {
        const node = root()
        const button = node.querySelector('button'), p = node.querySelector('p')
        let count = 0
        const show = () => { p.textContent = 'Clicked ' + count; p.setAttribute('aria-current', String(count > 0)) }
        button.addEventListener('click', () => { count++; show() })
        show()
        $.append(anchor, node)
      }
      mount(App, { target: document.getElementById('app') })`,
    steps: ['#b', '#b'],
  },
  {
    name: 'angular',
    body: '<app-root></app-root>',
    module: `
      import 'zone.js'
      import '@angular/compiler'
      import { Component } from '@angular/core'
      import { bootstrapApplication } from '@angular/platform-browser'
      class App { count = 0; items = ['One', 'Two', 'Three'] }
      const Root = Component({
        selector: 'app-root', standalone: true,
        styles: ['h1{color:#1976d2} li.on{background:#ffd} :host{display:block;padding:20px;font:18px sans-serif}'],
        template: '<h1>Angular {{count}}</h1><button id="b" (click)="count = count + 1">More</button><ul>@for (i of items; track i) {<li [class.on]="$index < count">{{i}}</li>}</ul>',
      })(App) ?? App
      bootstrapApplication(Root)`,
    steps: ['#b', '#b'],
  },
  {
    name: 'ag-grid',
    body: '<div id="grid" style="height:420px;width:800px"></div>',
    module: `
      import { createGrid, ModuleRegistry, AllCommunityModule } from 'ag-grid-community'
      ModuleRegistry.registerModules([AllCommunityModule])
      createGrid(document.getElementById('grid'), {
        columnDefs: [{ field: 'make' }, { field: 'model' }, { field: 'price' }],
        rowData: Array.from({ length: 200 }, (_, at) => ({ make: 'Make ' + (at % 7), model: 'Model ' + at, price: at * 1000 })),
      })`,
    steps: [
      '.ag-header-cell[col-id=price] .ag-header-cell-label',
      { run: "document.querySelector('.ag-grid-viewport, .ag-body-viewport').scrollTop = 900" },
    ],
  },
  {
    name: 'codemirror',
    body: '<div id="editor"></div>',
    module: `
      import { EditorView, basicSetup } from 'codemirror'
      import { javascript } from '@codemirror/lang-javascript'
      window.view = new EditorView({ doc: 'function hello(name) {\\n  return "Hello " + name // greets\\n}\\n'.repeat(6), extensions: [basicSetup, javascript()], parent: document.getElementById('editor') })`,
    steps: [
      { run: "view.dispatch({ changes: { from: 0, insert: '// first\\n' } })" },
      { run: "view.dispatch({ changes: { from: 0, insert: 'let a = 1\\n' } })" },
    ],
  },
  {
    name: 'leaflet',
    head: css('leaflet/dist/leaflet.css'),
    body: `<div id="map" style="height:500px;width:800px"></div>${script('leaflet/dist/leaflet.js')}
      <script>const map = L.map('map', { zoomAnimation: false, fadeAnimation: false }).setView([51.5, -0.09], 12)
      L.circle([51.5, -0.09], { radius: 900, color: 'red' }).addTo(map)
      L.polygon([[51.51, -0.08], [51.50, -0.06], [51.52, -0.047]]).addTo(map).bindPopup('A polygon')
      L.control.scale().addTo(map)</script>`,
    steps: ['.leaflet-control-zoom-in', { run: 'map.panBy([80, 40], { animate: false })' }],
  },
  {
    name: 'chart.js (canvas)',
    body: '<h1>Sales</h1><div style="width:600px"><canvas id="c"></canvas></div>',
    module: `
      import Chart from 'chart.js/auto'
      new Chart(document.getElementById('c'), { type: 'bar', options: { animation: false }, data: { labels: ['a', 'b', 'c'], datasets: [{ label: 'n', data: [3, 5, 2] }] } })`,
    steps: [{ run: "document.querySelector('h1').textContent = 'Sales of May'" }],
  },
  {
    name: 'mermaid',
    body: '<pre class="mermaid">graph TD; A[Start] --> B{Choice}; B -->|yes| C[Good]; B -->|no| D[Bad];</pre><p id="p">below</p>',
    module: `
      import mermaid from 'mermaid/dist/mermaid.esm.min.mjs'
      mermaid.initialize({ startOnLoad: false })
      mermaid.run().then(() => document.body.setAttribute('data-ready', ''))`,
    steps: [{ run: "document.querySelector('#p').textContent = 'changed'" }],
  },
  {
    name: 'reveal.js',
    head: css('reveal.js/dist/reveal.css') + css('reveal.js/dist/theme/black.css'),
    body: `<div class="reveal"><div class="slides"><section><h2>First</h2><p>one</p></section>
      <section data-background-color="#264"><h2>Second</h2></section><section><h2>Third</h2></section></div></div>
      ${script('reveal.js/dist/reveal.js')}<script>Reveal.initialize({ transition: 'none', backgroundTransition: 'none' })</script>`,
    steps: [{ run: 'Reveal.next()' }, { run: 'Reveal.next()' }],
  },
  {
    name: 'video.js',
    head: css('video.js/dist/video-js.css'),
    body: `<video id="v" class="video-js" controls width="640" height="360"></video><p id="p">Below</p>
      ${script('video.js/dist/video.min.js')}<script>const player = videojs('v', { userActions: { hotkeys: true } })</script>`,
    steps: [{ run: "player.addClass('vjs-has-started'); player.userActive(true)" }],
  },
  {
    name: 'swagger-ui',
    head: css('swagger-ui-dist/swagger-ui.css'),
    body: `<div id="ui"></div>${script('swagger-ui-dist/swagger-ui-bundle.js')}
      <script>SwaggerUIBundle({ dom_id: '#ui', spec: { openapi: '3.0.0', info: { title: 'Pets', version: '1' }, paths: {
        '/pets': { get: { summary: 'List pets', responses: { 200: { description: 'ok' } } }, post: { summary: 'Add', responses: { 201: { description: 'made' } } } } } } })</script>`,
    steps: ['.opblock-get .opblock-summary-control', '.opblock-post .opblock-summary-control'],
  },
  {
    name: 'todomvc',
    head: css('todomvc-common/base.css') + css('todomvc-app-css/index.css'),
    body: `<section class="todoapp"><header class="header"><h1>todos</h1></header>
      <section class="main"><ul class="todo-list"><li class="completed"><div class="view"><input class="toggle" type="checkbox" checked><label>Taste JavaScript</label></div></li>
      <li id="two"><div class="view"><input class="toggle" type="checkbox"><label>Buy a unicorn</label></div></li></ul></section>
      <footer class="footer"><span class="todo-count"><strong>1</strong> item left</span></footer></section>`,
    steps: [{ run: "document.querySelector('#two').classList.add('completed')" }],
  },
  {
    name: 'tailwind',
    head: script('@tailwindcss/browser/dist/index.global.js'),
    body: `<main class="p-6 bg-slate-900 text-white min-h-screen"><h1 class="text-3xl font-bold">Tailwind</h1>
      <div id="box" data-state="closed" class="mt-4 rounded-lg bg-sky-500 p-4 data-[state=open]:bg-rose-500 data-[state=open]:w-96">Panel</div>
      <div class="grid grid-cols-3 gap-4 mt-4"><div class="bg-white/10 p-4">1</div><div class="bg-white/20 p-4">2</div><div class="bg-white/30 p-4">3</div></div></main>`,
    steps: [{ run: "document.getElementById('box').dataset.state = 'open'" }],
  },
  {
    name: 'font-awesome',
    head: css('@fortawesome/fontawesome-free/css/all.min.css'),
    body: `<main style="font:24px sans-serif;padding:20px"><i class="fa-solid fa-house"></i> Home <i id="i" class="fa-regular fa-envelope"></i> Mail
      <i class="fa-brands fa-github fa-3x"></i><p><button id="b">Change</button></p></main>`,
    steps: [{ run: "document.getElementById('i').className = 'fa-solid fa-bell'" }],
  },
  {
    name: 'native elements',
    body: `<style>body{font:16px sans-serif}:root{--p:12px}.s{padding:var(--p);padding-bottom:2px;background:#def}
        @media (prefers-color-scheme: dark){.s{background:#234;color:#fff}}</style>
      <h1>Native</h1><progress value="0.7"></progress> <meter value="0.4">40</meter>
      <ol><li value="7">seven</li><li>eight</li></ol><details open><summary>More</summary>inside</details>
      <div class="s">A shorthand with a variable</div><button id="d">Dialog</button> <button popovertarget="p" id="pop">Popover</button>
      <div popover id="p">I am a popover</div><dialog id="dlg">In a dialog</dialog>
      <form>Name <input value="typed"> <input type="checkbox" checked> <input type="range" value="80"> <input type="submit" value="Send it">
      <select><option>One</option></select></form><img width="120" height="60" alt="" src="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='120' height='60'%3E%3Crect width='120' height='60' fill='teal'/%3E%3C/svg%3E">
      <img alt="" src="/node_modules/leaflet/dist/images/layers-2x.png">
      <svg width="80" height="40"><rect width="80" height="40" fill="orange"/></svg>
      <script>document.getElementById('d').onclick = () => document.getElementById('dlg').show()</script>`,
    steps: ['#d', '#pop'],
  },
]
