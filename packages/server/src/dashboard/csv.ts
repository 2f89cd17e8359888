import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { partsOf } from '../parts.ts'

export type CsvValue = string | number | boolean | null

export type CsvColumns<Row> = [name: string, read: (row: Row) => CsvValue][]

const rowsAPart = 500

/** Sends rows as a file of today, `note` being written before any is read. */
export async function sendCsv<Row>(
  { method }: FastifyRequest,
  reply: FastifyReply,
  {
    name,
    columns,
    read,
    note,
  }: {
    name: string
    columns: CsvColumns<Row>
    /** Up to so many rows after one, or from the first on. */
    read: (after: Row | undefined, limit: number) => Promise<Row[]>
    note: () => Promise<unknown>
  },
): Promise<never> {
  const day = new Date().toISOString().slice(0, 10)
  reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${name}-${day}.csv"`)
  if (method === 'HEAD') return reply.send('') as never
  await note()
  return reply.send(Readable.from(csvOf(columns, read), { objectMode: false })) as never
}

/** Rows as CSV (RFC 4180), read and written part by part until there are no more. */
export async function* csvOf<Row>(
  columns: CsvColumns<Row>,
  read: (after: Row | undefined, limit: number) => Promise<Row[]>,
): AsyncGenerator<string> {
  yield lineOf(columns.map(([name]) => name))
  for await (const rows of partsOf<Row>(rowsAPart, (after) => read(after, rowsAPart))) {
    yield rows.map((row) => lineOf(columns.map(([, value]) => value(row)))).join('')
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
