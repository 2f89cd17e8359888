/* Binary search in lists that are sorted by time. */

/** The index of the first item that is not before `at`; the length if there is none. */
export function firstFrom(list: readonly { at: number }[], at: number): number {
  return firstWhere(list, (item) => item.at >= at)
}

/** The index of the first item after `at`; the length if there is none. */
export function firstAfter(list: readonly { at: number }[], at: number): number {
  return firstWhere(list, (item) => item.at > at)
}

/** In a list of which all after the first one that `isMeant` are meant too. */
function firstWhere<T>(list: readonly T[], isMeant: (item: T) => boolean): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isMeant(list[middle] as T)) high = middle
    else low = middle + 1
  }
  return low
}
