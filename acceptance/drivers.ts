import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import puppeteer from 'puppeteer-core'

/** One window of a browser, as far as the smoke tests need it. */
export interface Driven {
  open(url: string): Promise<void>
  /** Returns an expression of the page. */
  evaluate(expression: string): Promise<unknown>
  click(selector: string): Promise<void>
  close(): Promise<void>
}

export interface Driver {
  name: string
  /** Debian packages, and a file that shows that each is there. */
  packages: Record<string, string>
  launch(): Promise<Driven>
}

const missing = ({ packages }: Driver) =>
  Object.keys(packages).filter((name) => !existsSync(packages[name] as string))

/**
 * Why a browser cannot be driven here; nothing where it can. It is said in the open, and where
 * nobody reads the output, that is in CI, it throws.
 */
export function reasonToSkip(driver: Driver, isCI = process.env.CI === 'true') {
  const packages = missing(driver)
  if (packages.length === 0) return undefined
  const words = `The SDK in ${driver.name} needs the Debian packages ${packages.join(' ')}`
  if (isCI) throw new Error(`${words}. In CI nothing is skipped: install them first.`)
  console.warn(`\n*** SKIPPED: ${words}. Nothing of it was tested. ***\n`)
  return words
}

/** By WebDriver BiDi, which Firefox speaks itself. */
export const firefox: Driver = {
  name: 'Firefox',
  packages: { 'firefox-esr': '/usr/bin/firefox-esr' },
  async launch() {
    const browser = await puppeteer.launch({
      browser: 'firefox',
      executablePath: '/usr/bin/firefox-esr',
      headless: true,
      timeout: 120_000,
      protocolTimeout: 120_000,
    })
    const page = await browser.newPage()
    page.setDefaultTimeout(120_000)
    return {
      open: async (url) => void (await page.goto(url)),
      evaluate: (expression) => page.evaluate(expression),
      click: (selector) => page.click(selector),
      close: () => browser.close(),
    }
  },
}

const library = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`

/** By WebDriver, spoken by the driver that WebKitGTK comes with; its small browser needs a screen. */
export const webkit: Driver = {
  name: 'WebKit',
  packages: {
    'webkit2gtk-driver': '/usr/bin/WebKitWebDriver',
    'libwebkit2gtk-4.1-0': `${library}/webkit2gtk-4.1/MiniBrowser`,
    xvfb: '/usr/bin/Xvfb',
  },
  async launch() {
    const home = await mkdtemp(join(tmpdir(), 'lethe-webkit-'))
    const screen = await startScreen()
    const port = await freePort()
    const driver = spawn('WebKitWebDriver', ['--host=127.0.0.1', `--port=${port}`], {
      env: { ...process.env, HOME: home, DISPLAY: screen.display, XDG_RUNTIME_DIR: home },
      stdio: 'ignore',
    })
    const close = async () => {
      for (const child of [driver, screen.child]) await end(child)
      await rm(home, { recursive: true, force: true })
    }
    try {
      const send = await startSession(`http://127.0.0.1:${port}`)
      return drivenBy(send, close)
    } catch (error) {
      await close()
      throw error
    }
  },
}

type Send = (method: string, path: string, body?: object) => Promise<unknown>

async function startSession(url: string): Promise<Send> {
  const send: Send = async (method, path, body) => {
    const answer = await fetch(url + path, { method, ...(body && { body: JSON.stringify(body) }) })
    const { value } = JSON.parse(await answer.text())
    if (!answer.ok) throw new Error(`WebDriver: ${value.error}: ${value.message}`)
    return value
  }
  await untilTrue(() =>
    send('GET', '/status').then(
      () => true,
      () => false,
    ),
  )
  const binary = webkit.packages['libwebkit2gtk-4.1-0']
  const options = { 'webkitgtk:browserOptions': { binary, args: ['--automation'] } }
  const { sessionId } = (await send('POST', '/session', {
    capabilities: { alwaysMatch: options },
  })) as { sessionId: string }
  return (method, path, body) => send(method, `/session/${sessionId}${path}`, body)
}

function drivenBy(send: Send, close: () => Promise<void>): Driven {
  return {
    open: async (url) => void (await send('POST', '/url', { url })),
    evaluate: (expression) =>
      send('POST', '/execute/sync', { script: `return (${expression})`, args: [] }),
    async click(selector) {
      const using = { using: 'css selector', value: selector }
      const [id] = Object.values((await send('POST', '/element', using)) as object)
      await send('POST', `/element/${id}/click`, {})
    },
    async close() {
      await send('DELETE', '').catch(() => {})
      await close()
    },
  }
}

/** A screen in memory; the server picks a number that is free, and tells it. */
async function startScreen(): Promise<{ display: string; child: ChildProcess }> {
  const words = ['-displayfd', '3', '-screen', '0', '1280x900x24', '-nolisten', 'tcp']
  const child = spawn('Xvfb', words, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const number = await new Promise<string>((resolve, reject) => {
    child.stdio[3]?.once('data', (bytes) => resolve(String(bytes).trim()))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`Xvfb ended with ${code}.`)))
  })
  return { display: `:${number}`, child }
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

async function untilTrue(what: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await what()) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('WebKitWebDriver does not answer.')
}

/** For what cannot pick a port by itself. */
export function freePort(): Promise<number> {
  const server = createServer()
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
