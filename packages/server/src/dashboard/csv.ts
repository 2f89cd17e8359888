export type CsvValue = string | number | boolean | null

export type CsvColumns<Row> = [name: string, read: (row: Row) => CsvValue][]

const rowsAPart = 500

/** Rows as CSV (RFC 4180), read and written part by part until there are no more. */
export async function* csvOf<Row>(
  columns: CsvColumns<Row>,
  read: (after: Row | null, limit: number) => Promise<Row[]>,
): AsyncGenerator<string> {
  yield lineOf(columns.map(([name]) => name))
  let after: Row | null = null
  for (;;) {
    const rows: Row[] = await read(after, rowsAPart)
    yield rows.map((row) => lineOf(columns.map(([, value]) => value(row)))).join('')
    after = rows.at(-1) ?? null
    if (rows.length < rowsAPart) return
  }
}

function lineOf(values: CsvValue[]): string {
  return `${values.map(cellOf).join(',')}\r\n`
}

/**
 * What a spreadsheet takes for a formula: at the beginning, after whatever it trims, also in full
 * width; and after what it may take for the end of a cell or line, as it does where its own
 * separator is the semicolon; there quotes may stand before it, as a field `""=1` is `=1`.
 */
const formula = /(?<=^|[;|\t\r\n])(?=[\s\p{Z}\p{C}"]*[=+\-@＝＋－＠﹦﹢﹣﹫])/gu

/** Every cell is quoted; an apostrophe makes a formula a text, as externalIds are what anybody chose. */
function cellOf(value: CsvValue): string {
  const text = typeof value === 'string' ? value.replace(formula, "'") : String(value ?? '')
  return `"${text.replaceAll('"', '""')}"`
}
