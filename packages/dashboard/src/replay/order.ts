/* Binary search in lists that are sorted by time. */

/** The index of the first item that is not before `at`; the length if there is none. */
export function firstFrom(list: readonly { at: number }[], at: number): number {
  return firstIndex(list.length, (index) => (list[index]?.at ?? 0) >= at)
}

/** The index of the first item after `at`; the length if there is none. */
export function firstAfter(list: readonly { at: number }[], at: number): number {
  return firstIndex(list.length, (index) => (list[index]?.at ?? 0) > at)
}

/** The first index that `isMeant`, as all after it are; `length` if there is none. */
export function firstIndex(length: number, isMeant: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isMeant(middle)) high = middle
    else low = middle + 1
  }
  return low
}
