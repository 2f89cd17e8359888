/** What comes one by one, some at a time. */
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
 * A list that is too long for one statement: `read` returns up to `length` items of those after one,
 * or from the first on. The next part is read when this one was worked on; one that is not full is
 * the last.
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
