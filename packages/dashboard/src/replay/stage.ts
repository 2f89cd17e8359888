import { Replayer } from '@rrweb/replay'
import type { eventWithTime } from '@rrweb/types'
import { showPopovers } from './popovers.ts'

/** More animations at once than any page needs. */
const animationsMaximum = 1_000

/** How many events that cannot be shown are skipped. */
const stumblesMaximum = 100

const placeholderRules = [
  // Placeholders of the size of images that were not recorded.
  'img:not([src]) { background: repeating-linear-gradient(45deg, #0001 0 6px, #0002 6px 12px); min-width: 8px; min-height: 8px; }',
  'video:not([src]), audio:not([src]) { background: #0002; }',
  // A control with masked state: what it shows is not what the visitor chose.
  '[data-lethe-masked] { opacity: 0.6 !important; outline: 2px dashed #8888 !important; outline-offset: 1px; }',
]

export interface Stage {
  /** The first call needs a full snapshot and one more event. */
  add(events: eventWithTime[]): void
  play(at: number): void
  pause(at: number): void
  setSpeed(speed: number): void
  /** Milliseconds since the first event. */
  time(): number
  fit(): void
  /** Stops the page's animations if there are too many. Returns whether it did. */
  calm(): boolean
  /** Removes what it built. */
  close(): void
}

export interface StageEvents {
  onFinish(): void
  onDamage(): void
}

/** The rrweb player, scaled to the window. Its frame runs no scripts: see replayPolicy. */
export function createStage(root: HTMLElement, events: eventWithTime[], on: StageEvents): Stage {
  const replayer = new Replayer(events, {
    root,
    triggerFocus: false,
    showWarning: false,
    mouseTail: { duration: 450, lineWidth: 2.5, strokeStyle: '#0f6f8f' },
    insertStyleRules: placeholderRules,
    logger: { log() {}, warn() {} },
  })
  let size = { width: 0, height: 0 }
  let stumbles = 0
  let isClosed = false
  // Otherwise the keyboard could still reach the recorded page.
  replayer.wrapper.inert = true
  replayer.iframe.tabIndex = -1
  replayer.iframe.title = 'Recorded page'

  const fit = () => {
    if (size.width === 0) return
    const scale = Math.min(innerWidth / size.width, innerHeight / size.height, 1)
    const left = (innerWidth - size.width * scale) / 2
    const top = (innerHeight - size.height * scale) / 2
    replayer.wrapper.style.cssText = `width:${size.width}px;height:${size.height}px;transform:translate(${left}px,${top}px) scale(${scale})`
  }
  replayer.on('resize', (payload) => {
    size = payload as typeof size
    fit()
  })
  replayer.on('finish', () => isClosed || on.onFinish())
  replayer.on('fullsnapshot-rebuilded', () => {
    if (replayer.iframe.contentDocument) showPopovers(replayer.iframe.contentDocument)
  })

  const attempt = (act: () => void) => {
    try {
      act()
    } catch {
      on.onDamage()
    }
  }
  // An error while playing is caught nowhere else, and would stop the clock.
  const stumble = (event: ErrorEvent) => {
    event.preventDefault()
    on.onDamage()
    stumbles++
    if (stumbles <= stumblesMaximum && replayer.service.state.matches('playing')) {
      attempt(() => replayer.play(replayer.getCurrentTime() + 50))
    }
  }
  window.addEventListener('error', stumble)

  return {
    add(more) {
      for (const event of more) replayer.addEvent(event)
    },
    play: (at) => attempt(() => replayer.play(at)),
    pause: (at) => attempt(() => replayer.pause(at)),
    setSpeed: (speed) => replayer.setConfig({ speed }),
    time: () => replayer.getCurrentTime(),
    fit,
    calm: () => calm(replayer.iframe.contentDocument),
    close() {
      window.removeEventListener('error', stumble)
      isClosed = true
      attempt(() => replayer.destroy())
      root.replaceChildren()
    },
  }
}

function calm(page: Document | null): boolean {
  if (!page || page.getAnimations().length <= animationsMaximum) return false
  const style = page.createElement('style')
  style.textContent =
    '*, ::before, ::after { animation: none !important; transition: none !important }'
  page.head?.append(style)
  return true
}
