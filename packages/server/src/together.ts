export interface TogetherOptions<Item, Result> {
  /** Handles one part and returns a result for each, in the order of the part. */
  work(items: Item[]): Promise<Result[]>
  /** The order within a part: two parts that lock the same rows do so in the same order. */
  order(a: Item, b: Item): number
  /** What is of different places is never in one part. */
  placeOf?(item: Item): number
}

/** A part takes at most so many, which bounds how long each of them waits for the others. */
const itemsMaximum = 64

/** Parts of one place that are worked on at the same time. */
const partsAtOnce = 2

/** So many waiting items are worth a second part. */
const worthPart = 16

interface Waiting<Item, Result> {
  item: Item
  done: (result: Result) => void
  failed: (error: unknown) => void
}

interface Line<Item, Result> {
  waiting: Waiting<Item, Result>[]
  running: number
}

/**
 * Works on items in parts: those that come while a part is worked on are the next part. For
 * statements that end with a commit, which waits for the disk: 64 rows wait for it no longer than one.
 */
export function together<Item, Result>({
  work,
  order,
  placeOf = () => 0,
}: TogetherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const lines = new Map<number, Line<Item, Result>>()

  async function runParts(place: number, line: Line<Item, Result>): Promise<void> {
    line.running++
    while (line.waiting.length > 0) await runPart(line.waiting.splice(0, itemsMaximum))
    line.running--
    if (line.running === 0) lines.delete(place)
  }

  async function runPart(part: Waiting<Item, Result>[]): Promise<void> {
    part.sort((a, b) => order(a.item, b.item))
    try {
      const results = await work(part.map(({ item }) => item))
      for (const [at, { done }] of part.entries()) done(results[at] as Result)
    } catch (error) {
      for (const { failed } of part) failed(error)
    }
  }

  return (item) =>
    new Promise((done, failed) => {
      const place = placeOf(item)
      const line = lines.get(place) ?? { waiting: [], running: 0 }
      lines.set(place, line)
      const begin = () => {
        if (line.waiting.length > 0) void runParts(place, line)
      }
      line.waiting.push({ item, done, failed })
      // The first part begins once all requests that have arrived are read.
      if (line.running === 0 && line.waiting.length === 1) setImmediate(begin)
      else if (line.waiting.length >= worthPart && line.running < partsAtOnce) begin()
    })
}

/** A fault of one of these classes is a fault of one row: nothing of the statement took place. */
export function isFaultOfRow(error: unknown): boolean {
  return /^(?:21|22|23|40|54|55|57014)/.test(String((error as { code?: unknown }).code))
}
