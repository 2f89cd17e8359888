/** Groups items into batches. */
export async function* inParts<Item>(
  items: AsyncIterable<Item>,
  length: number,
): AsyncGenerator<Item[]> {
  let part: Item[] = []
  for await (const item of items) {
    part.push(item)
    if (part.length < length) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}

/**
 * Reads a list in batches: `read` returns up to `length` items after the given one, or from the first
 * on. Each batch is read after the previous one was handled; the first that is not full is the last.
 */
export async function* partsOf<Item>(
  length: number,
  read: (after: Item | undefined) => Promise<Item[]>,
): AsyncGenerator<Item[]> {
  let after: Item | undefined
  for (;;) {
    const part = await read(after)
    yield part
    if (part.length < length) return
    after = part.at(-1)
  }
}
