/** What `growth.ts` measured, as tables in Markdown and as a picture. */

export interface Growth {
  persons: number
  sessions: number
  erased: number
  chunksASession: number
  /** Of the tables with more than 10,000 rows; `bytes` has what is stored apart, and no index. */
  sizes: { table: string; rows: number; bytes: number; indexes: Record<string, number> }[]
  /** In milliseconds. */
  times: Record<string, { p50: number; p99: number }>
  /** In milliseconds of processor time of the database. */
  processor: Record<string, { p50: number; p99: number }>
  /** Resident, of the service at the end. */
  megabytes: number
}

const perPerson = [
  'persons',
  'person_search',
  'search_shares',
  'search_segments',
  'search_segment_grams',
]
const perSession = ['sessions', 'chunks', 'browsers', 'person_browsers', 'browser_keys']

export function printTables(all: Growth[]): void {
  for (const growth of all) {
    console.log(`\n${millions(growth.persons)} persons, ${millions(growth.sessions)} sessions\n`)
    table(
      ['table', 'rows', 'bytes a row', 'indexes: MB per million rows'],
      growth.sizes.map(({ table, rows, bytes, indexes }) => [
        table,
        millions(rows),
        (bytes / rows).toFixed(0),
        Object.entries(indexes)
          .map(([name, size]) => `${name} ${(size / rows).toFixed(0)}`)
          .join(', '),
      ]),
    )
  }
  console.log()
  printTimes('p50, p99 in ms, over HTTP', all, ({ times }) => times)
  console.log()
  printTimes('processor time of the database, p50, p99 in ms', all, ({ processor }) => processor)
  console.log()
  table(
    ['', ...all.map((one) => `${millions(one.persons)} measured`), '100 million, extrapolated'],
    [
      [
        'persons',
        ...all.map((one) => gigabytes(sizeOf(one, perPerson))),
        extrapolated(all, perPerson),
      ],
      [
        'sessions',
        ...all.map((one) => gigabytes(sizeOf(one, perSession))),
        extrapolated(all, perSession),
      ],
    ],
  )
}

function printTimes(what: string, all: Growth[], timesOf: (one: Growth) => Growth['times']): void {
  const names = [...new Set(all.flatMap((one) => Object.keys(timesOf(one))))]
  table(
    [what, ...all.map((one) => `${millions(one.persons)} persons`)],
    names.map((name) => [
      name,
      ...all.map((one) => {
        const { p50 = Number.NaN, p99 = Number.NaN } = timesOf(one)[name] ?? {}
        return `${p50.toFixed(1)}, ${p99.toFixed(1)}`
      }),
    ]),
  )
}

/** Bytes of the tables with their indexes. */
function sizeOf({ sizes }: Growth, tables: string[]): number {
  return sizes
    .filter(({ table }) => tables.includes(table))
    .reduce((sum, { bytes, indexes }) => sum + bytes + sumOf(Object.values(indexes)), 0)
}

const sumOf = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0)

/** From the largest that was measured, in proportion. */
function extrapolatedSize(all: Growth[], tables: string[]): number {
  const largest = all.at(-1) as Growth
  return (
    (sizeOf(largest, tables) * 100e6) / (tables === perPerson ? largest.persons : largest.sessions)
  )
}

const extrapolated = (all: Growth[], tables: string[]) => gigabytes(extrapolatedSize(all, tables))
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(bytes < 10e9 ? 1 : 0)} GB`
const millions = (count: number) =>
  count >= 100_000 ? `${Number((count / 1e6).toFixed(1))} million` : count.toLocaleString('en')

function table(head: string[], rows: string[][]): void {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  console.log([head, rule, ...rows].map(line).join('\n'))
}

const [width, height, left, top, bottom] = [720, 320, 60, 40, 260]
const panelWidth = 250

/** Two panels over the number of persons, or of sessions, both axes logarithmic: sizes, and 99th percentiles. */
export function draw(all: Growth[]): string {
  const sizes = [
    { name: 'persons', tables: perPerson, colour: '#3b5bdb' },
    { name: 'sessions', tables: perSession, colour: '#c2570c' },
  ].map(({ name, tables, colour }) => ({
    name,
    colour,
    points: [
      ...all
        .map(
          (one) =>
            [name === 'persons' ? one.persons : one.sessions, sizeOf(one, tables) / 1e9] as const,
        )
        .filter(([count]) => count >= 1e5),
      [100e6, extrapolatedSize(all, tables) / 1e9] as const,
    ],
    measured: all.filter((one) => (name === 'persons' ? one.persons : one.sessions) >= 1e5).length,
  }))
  const colours = ['#868e96', '#3b5bdb', '#2b8a3e', '#c2570c', '#e67700', '#862e9c', '#c92a2a']
  const names = Object.keys(all.at(-1)?.processor ?? {})
  const times = names.map((name, n) => ({
    name,
    colour: colours[n % colours.length] as string,
    points: all.map((one) => [one.persons, one.processor[name]?.p99 ?? Number.NaN] as const),
    measured: all.length,
  }))
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
<title>Sizes and processor times by the number of persons and sessions</title>
<rect width="100%" height="100%" fill="#fff"/>
${panel(left, 'Tables and indexes, GB (hollow: extrapolated)', [0.01, 1_000], sizes)}
${panel(left + panelWidth + 80, 'p99 of processor time of the database, ms', [0.1, 100], times)}
</svg>
`
}

interface Line {
  name: string
  colour: string
  points: (readonly [persons: number, value: number])[]
  measured: number
}

function panel(x: number, title: string, [least, most]: [number, number], lines: Line[]): string {
  const across = (persons: number) => x + (Math.log10(persons / 1e5) / 3) * panelWidth
  const up = (value: number) =>
    bottom - (Math.log10(value / least) / Math.log10(most / least)) * (bottom - top)
  const parts = [`<text x="${x}" y="20" font-size="13">${title}</text>`]
  for (const persons of [1e5, 1e6, 10e6, 100e6]) {
    parts.push(
      `<path d="M${across(persons)} ${top}V${bottom}" stroke="#dee2e6"/>`,
      `<text x="${across(persons)}" y="${bottom + 16}" text-anchor="middle">${persons / 1e6} M</text>`,
    )
  }
  for (let value = least; value <= most * 1.01; value *= 10) {
    const label = Number(value.toPrecision(1))
    parts.push(
      `<path d="M${x} ${up(value)}h${panelWidth}" stroke="#dee2e6"/>`,
      `<text x="${x - 6}" y="${up(value) + 4}" text-anchor="end">${label}</text>`,
    )
  }
  for (const [n, { name, colour, points, measured }] of lines.entries()) {
    const places = points.map(
      ([persons, value]) => `${across(persons).toFixed(1)} ${up(value).toFixed(1)}`,
    )
    const line = (some: string[], dash = '') =>
      some.length < 2
        ? ''
        : `<path d="M${some.join('L')}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`
    parts.push(
      line(places.slice(0, measured)),
      line(places.slice(measured - 1), ' stroke-dasharray="4 4"'),
      ...places.map((place, i) => {
        const [cx, cy] = place.split(' ')
        return `<circle cx="${cx}" cy="${cy}" r="3.5" stroke="${colour}" fill="${i < measured ? colour : '#fff'}"/>`
      }),
      `<text x="${x + (n % 3) * 96}" y="${bottom + 34 + Math.floor(n / 3) * 14}" fill="${colour}">${name.replace(/ \(.*/, '')}</text>`,
    )
  }
  return parts.filter((part) => part !== '').join('\n')
}
