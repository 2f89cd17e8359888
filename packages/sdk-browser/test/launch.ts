import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const whole = '/usr/bin/chromium'

/** Chromium without the windows around its pages, each of which costs more than most pages do. */
const shell = '/usr/bin/chromium-headless-shell'

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic']

export function launch(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_PATH ?? (existsSync(shell) ? shell : whole)
  return chromium.launch({ executablePath, args })
}

/** With its bfcache, which the shell lacks and Playwright keeps pages out of. */
export function launchWhole(): Promise<Browser> {
  const ignoreDefaultArgs = ['--disable-back-forward-cache']
  const executablePath = process.env.CHROMIUM_PATH ?? whole
  return chromium.launch({ executablePath, args, ignoreDefaultArgs })
}
