import pixelmatch from 'pixelmatch'
import { PNG } from 'pngjs'

export interface Area {
  x: number
  y: number
  width: number
  height: number
}

/** How many percent of the pixels outside of the masked areas differ, and a picture of which. */
export function differenceOf(live: Buffer, replay: Buffer, masked: Area[]) {
  const [one, other] = [PNG.sync.read(live), PNG.sync.read(replay)]
  const { width, height } = one
  const hidden = new Uint8Array(width * height)
  for (const area of masked) cover(hidden, width, height, area)
  for (let at = 0; at < hidden.length; at++) {
    if (hidden[at]) for (const { data } of [one, other]) data.fill(0, at * 4, at * 4 + 4)
  }
  const image = new PNG({ width, height })
  const different = pixelmatch(one.data, other.data, image.data, width, height, { threshold: 0.1 })
  const seen = hidden.length - hidden.reduce((sum, each) => sum + each, 0)
  return { percent: (100 * different) / Math.max(1, seen), image: PNG.sync.write(image) }
}

function cover(hidden: Uint8Array, width: number, height: number, area: Area): void {
  const margin = 3
  const right = Math.min(width, Math.ceil(area.x + area.width + margin))
  const bottom = Math.min(height, Math.ceil(area.y + area.height + margin))
  for (let y = Math.max(0, Math.floor(area.y - margin)); y < bottom; y++) {
    for (let x = Math.max(0, Math.floor(area.x - margin)); x < right; x++) hidden[y * width + x] = 1
  }
}
