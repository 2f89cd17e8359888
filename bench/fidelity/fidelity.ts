/**
 * How much of a page a recording shows: real pages are recorded by the shipped SDK into the real
 * service, replayed in the dashboard's own frame, and their pictures compared with those of the
 * live page, as it went and after seeks. `npm run fidelity [-- NAME…]`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Area, differenceOf } from './compare.ts'
import { type FidelityPage, pages } from './pages.ts'
import { type Lethe, startLethe } from './service.ts'
import { startSite } from './site.ts'

const view = { width: 1000, height: 700 }
const pictures = join(import.meta.dirname, 'pictures')

interface Frame {
  at: number
  picture: Buffer
  /** Where the page shows what is masked by design. */
  masked: Area[]
}

interface Row {
  name: string
  preset: string
  /** Percent of the pixels outside of masked areas, for each picture: as it went, after seeks. */
  differences: number[]
}

const wanted = process.argv.slice(2)
mkdirSync(pictures, { recursive: true })
const { lethe, stop } = await startLethe()
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--force-device-scale-factor=1', '--hide-scrollbars'],
})
const site = await startSite(lethe)
const rows: Row[] = []
for (const page of pages) {
  if (wanted.length > 0 && !wanted.some((each) => page.name.includes(each))) continue
  for (const preset of ['open', 'balanced']) {
    const row = await measure(page, preset).catch((error: unknown) => ({
      name: `${page.name}: ${error instanceof Error ? error.message.split('\n')[0] : error}`,
      preset,
      differences: [],
    }))
    rows.push(row)
    console.log(lineOf(row))
  }
}
await site.stop()
await browser.close()
await stop()
const worst = Math.max(...rows.map(worstOf))
console.log(`\n${rows.length} recordings, the worst picture ${worst.toFixed(2)} % off (aim < 1 %)`)
process.exitCode = rows.some((row) => worstOf(row) >= 1) ? 1 : 0

function worstOf({ differences }: Row): number {
  return differences.length > 0 ? Math.max(...differences) : 100
}

function lineOf(row: Row): string {
  const cells = row.differences.map((each) => each.toFixed(2)).join(', ')
  return `| ${row.name} | ${row.preset} | ${cells} | ${worstOf(row) < 1 ? 'met' : 'missed'} |`
}

async function measure(page: FidelityPage, preset: string): Promise<Row> {
  const { frames, events, startedAt } = await record(browser, page, preset)
  const shown = await replay(
    browser,
    lethe,
    events,
    frames.map(({ at }) => at - startedAt),
  )
  const differences = shown.map((picture, index) => {
    const live = frames[index % frames.length] as Frame
    const { percent, image } = differenceOf(live.picture, picture, live.masked)
    const file = `${page.name.replace(/\W+/g, '-')}.${preset}.${index}`
    if (percent >= 0.3) {
      writeFileSync(join(pictures, `${file}.live.png`), live.picture)
      writeFileSync(join(pictures, `${file}.replay.png`), picture)
      writeFileSync(join(pictures, `${file}.difference.png`), image)
    }
    return percent
  })
  return { name: page.name, preset, differences }
}

/** Goes through the page's steps with the recorder running, and takes a picture after each. */
async function record(browser: Browser, { name, steps }: FidelityPage, preset: string) {
  const context = await browser.newContext({ viewport: view, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(site.urlOf(name, preset), { waitUntil: 'networkidle' })
  await page.addStyleTag({ content: '*{caret-color:transparent!important}' })
  const frames: Frame[] = []
  const shoot = async () => {
    await sleep(600)
    const picture = await page.screenshot()
    frames.push({ at: Date.now(), picture, masked: await maskedAreas(page, preset) })
    // The next step has to be later than the picture in the recording's time too.
    await sleep(300)
  }
  await sleep(800)
  await shoot()
  for (const step of steps) {
    if (typeof step === 'string') await page.click(step, { force: true })
    else await page.evaluate(step.run)
    await page.mouse.move(990, 690)
    await shoot()
  }
  // Something that the last picture lies before.
  await page.evaluate("document.body.append(document.createElement('i'))")
  const session = await page.evaluate(
    "Object.keys(localStorage).filter((k) => k.startsWith('lethe')).map((k) => localStorage[k]).join()",
  )
  const id = /"sessionId":"([^"]+)"/.exec(String(session))?.[1] ?? ''
  await page.goto('about:blank')
  const events = await eventsOf(id)
  await context.close()
  return { frames, events, startedAt: events.startedAt }
}

/** What the service has of the session, once its last event is there. */
async function eventsOf(id: string): Promise<{ text: string; startedAt: number }> {
  for (let tries = 0; tries < 100; tries++) {
    const response = await fetch(`${lethe.url}/v1/sessions/${id}/events`, {
      headers: { authorization: `Bearer ${lethe.secretKey}` },
    })
    const text = response.ok ? await response.text() : ''
    if (text.includes('"tagName":"i"')) {
      const [first = '{}'] = text.split('\n')
      return { text, startedAt: JSON.parse(first).timestamp }
    }
    await sleep(100)
  }
  throw new Error('the recording did not arrive')
}

/** Plays the events in the frame that the dashboard plays them in, and takes the same pictures. */
async function replay(
  browser: Browser,
  { url }: Lethe,
  { text }: { text: string },
  times: number[],
): Promise<Buffer[]> {
  const context = await browser.newContext({ viewport: view, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await page.goto(`${url}/replay`)
  await page.evaluate(
    ({ text }) => {
      const { port1, port2 } = new MessageChannel()
      Object.assign(window, { port: port1, heard: [] as unknown[] })
      port1.onmessage = ({ data }) => (window as never as { heard: unknown[] }).heard.push(data)
      window.postMessage('lethe.replay.connect', '*', [port2])
      const bytes = new TextEncoder().encode(text).buffer
      port1.postMessage({ kind: 'bytes', bytes, tab: 0, isAppended: false })
      port1.postMessage({ kind: 'end', tab: 0 })
      port1.postMessage({ kind: 'complete' })
    },
    { text },
  )
  // No waitForFunction: the frame's policy forbids what it would evaluate by.
  const isThere =
    "heard.some(({ kind }) => kind === 'ready') && heard.some(({ kind, outline }) => kind === 'outline' && outline.isComplete)"
  while (!(await page.evaluate(isThere))) await sleep(50)
  const pictures: Buffer[] = []
  const shoot = async (at: number) => {
    await page.evaluate(`port.postMessage({ kind: 'seek', at: ${at} })`)
    await sleep(500)
    await page.evaluate(
      "document.querySelectorAll('.replayer-mouse, .replayer-mouse-tail').forEach((each) => { each.style.display = 'none' })",
    )
    pictures.push(await page.screenshot())
  }
  for (const at of times) await shoot(at)
  // The end, and then back to each: a seek backwards builds the page again.
  await shoot(times[times.length - 1] as number)
  pictures.pop()
  for (const at of times.toReversed()) await shoot(at)
  const back = pictures.splice(times.length).toReversed()
  await context.close()
  return [...pictures, ...back]
}

function maskedAreas(page: Page, preset: string): Promise<Area[]> {
  const always = 'input:not([type=submit]):not([type=button]),textarea,select,canvas,video,audio'
  const balanced =
    ',[contenteditable],[role=textbox],[role=combobox],[role=searchbox],[role=option],[role=radio],[role=checkbox],[aria-haspopup=listbox],form label,form legend,output'
  return page.evaluate(
    (selector) =>
      Array.from(document.querySelectorAll(selector), (each) => {
        const { x, y, width, height } = each.getBoundingClientRect()
        return { x, y, width, height }
      }),
    always + (preset === 'balanced' ? balanced : ''),
  )
}
