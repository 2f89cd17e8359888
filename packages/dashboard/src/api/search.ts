/* What stands in an address is anybody's text: each part is taken or left out, never believed. */

/** At most `maximum` characters, of which an emoji is one as for the server. */
export function textOf(value: unknown, maximum = 200): string | undefined {
  return typeof value === 'string' && value !== ''
    ? Array.from(value.slice(0, maximum * 2))
        .slice(0, maximum)
        .join('')
    : undefined
}

export function oneOf<T extends string>(value: unknown, ...known: T[]): T | undefined {
  return known.find((one) => one === value)
}

/** How many pages of a list are open: a reload opens as many again. */
export function pagesOf(value: unknown): number | undefined {
  const pages = Number(value)
  return Number.isInteger(pages) && pages > 1 && pages <= 40 ? pages : undefined
}

/** The parts that are there. */
export function present<T extends Record<string, unknown>>(parts: T): Present<T> {
  return Object.fromEntries(
    Object.entries(parts).filter(([, value]) => value !== undefined),
  ) as Present<T>
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
