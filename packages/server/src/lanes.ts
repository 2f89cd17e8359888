/**
 * Runs `work` for every item, at most `lanes` at a time. After a fault no further item is started;
 * rejects when those in progress have ended.
 */
export async function inLanes<Item>(
  items: Iterable<Item>,
  lanes: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  let hasFailed = false
  const lane = async () => {
    for (let next = rest.next(); !next.done && !hasFailed; next = rest.next()) {
      try {
        await work(next.value)
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: lanes }, lane))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}
