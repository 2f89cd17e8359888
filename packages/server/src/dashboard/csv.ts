import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { partsOf } from '../parts.ts'

export type CsvValue = string | number | boolean | null

export type CsvColumns<Row> = [name: string, read: (row: Row) => CsvValue][]

const rowsAPart = 500

/** Sends rows as a file with today's date. Calls `note` before it reads the rows. */
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
    /** Returns up to `limit` rows after the given one, or from the first. */
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

/** Yields rows as CSV (RFC 4180), batch by batch. */
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
 * Where a spreadsheet may see a formula: at the beginning of a cell, after white space that it trims,
 * and after a character that it may take for the end of a cell (a semicolon in some countries), also
 * in full-width forms or after quotes (`""=1` is read as `=1`).
 */
const formula = /(?<=^|[;|\t\r\n])(?=[\s\p{Z}\p{C}"]*[=+\-@＝＋－＠﹦﹢﹣﹫])/gu

/** Quotes a cell. An apostrophe turns a formula into text: anybody can choose an externalId. */
function cellOf(value: CsvValue): string {
  const text = typeof value === 'string' ? value.replace(formula, "'") : String(value ?? '')
  return `"${text.replaceAll('"', '""')}"`
}
