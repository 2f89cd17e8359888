import { type FileHandle, open as openFile } from 'node:fs/promises'
import { createPerson } from '@lethe/contract/person.ts'
import { defineCommand } from 'citty'
import type { Static } from 'typebox'
import { ApiError } from '../src/api-error.ts'
import { bodyBytesMaximum, parseJsonBody } from '../src/http/body.ts'
import { validatorCompiler } from '../src/http/validation.ts'
import { refuseUnlessWritten } from '../src/persons/store.ts'
import { personWriter } from '../src/persons/writer.ts'
import { existingProject, print, project, UsageError, withDatabase } from './command.ts'
import type { Opened } from './open.ts'
import { type Progress, withProgress } from './progress.ts'
import { ImportStopped, wordsFor } from './report.ts'
import { type Stop, untilStopped } from './signals.ts'

/** Lines that are written together. */
const linesAPart = 128

type Body = Static<(typeof createPerson)['schema']['body']>

const importFile = defineCommand({
  meta: {
    name: 'import',
    description:
      'Create persons, or merge properties into them: each line of the file is a body of POST /v1/persons.',
  },
  args: {
    file: { type: 'positional', required: true, description: 'Lines of JSON.' },
    project,
    'from-line': { type: 'string', default: '1', description: 'The line to begin with.' },
    json: {
      type: 'boolean',
      description: 'Lines of JSON: the progress, refused lines, then the result.',
    },
  },
  run: ({ args }) =>
    untilStopped((stop) =>
      withDatabase(async (opened) => {
        const { id: projectId } = await existingProject(opened, args.project)
        const from = args['from-line']
        if (!/^[1-9]\d{0,11}$/.test(from)) throw new UsageError('--from-line is a number from 1.')
        const refuse = (line: number, reason: string) => {
          if (args.json) print(JSON.stringify({ refused: { line, reason } }))
          else process.stderr.write(`line ${line}: ${reason}\n`)
        }
        const file = await openFile(args.file)
        // At a signal, the current batch is completed.
        void stop.wait()
        const importing = { opened, stop, projectId, file, from: Number(from), refuse }
        const counts = await withProgress(args.json, (progress) =>
          importLines(importing, progress),
        ).finally(() => file.close())
        const { lines, created, updated, unchanged, refused } = counts
        if (args.json) print(JSON.stringify(counts))
        else {
          const written = `${created} created, ${updated} updated, ${unchanged} unchanged`
          print(`${lines} lines: ${written}, ${refused} refused.`)
        }
        if (refused > 0) {
          throw new ImportStopped(`${refused} lines were refused; all others are imported.`)
        }
      }, stop),
    ),
})

export const persons = defineCommand({
  meta: { name: 'persons', description: 'Import persons.' },
  subCommands: { import: importFile },
})

interface Importing {
  opened: Opened
  stop: Stop
  projectId: number
  file: FileHandle
  from: number
  refuse: (line: number, reason: string) => void
}

interface Line {
  number: number
  body: Body
  bytes: number
}

/**
 * Lines of one person are written in their order, so a batch ends where a person occurs again. Writing
 * a line twice changes nothing, so starting from an earlier line than needed is harmless.
 */
async function importLines(
  { opened, stop, projectId, file, from, refuse }: Importing,
  { step }: Progress,
) {
  const counts = { lines: 0, created: 0, updated: 0, unchanged: 0, refused: 0 }
  const write = personWriter(opened.db)
  const onProgress = step('Importing')
  const { size } = await file.stat()
  /** All lines before it are written or refused. */
  let next = from
  let part = new Map<string, Line>()

  const refuseLine = (number: number, error: unknown) => {
    if (!(error instanceof ApiError)) throw error
    counts.refused += 1
    refuse(number, error.message.replace(/^The body/, 'The line'))
  }

  async function writePart(): Promise<void> {
    const writes = [...part.values()].map(async ({ number, body, bytes }) => {
      const { externalId, properties = {} } = body
      const writing = { projectId, externalId, properties, createMissing: true }
      try {
        const { outcome } = await write(writing, bytes)
        refuseUnlessWritten(outcome)
        counts[outcome as 'created' | 'updated' | 'unchanged'] += 1
      } catch (error) {
        refuseLine(number, error)
      }
    })
    const ends = await Promise.allSettled(writes)
    for (const end of ends) if (end.status === 'rejected') throw end.reason
    part = new Map()
    stop.signal.throwIfAborted()
  }

  try {
    for await (const { number, bytes, end } of linesOf(file)) {
      if (number < from) continue
      counts.lines += 1
      try {
        const body = readLine(bytes)
        if (part.has(body.externalId) || part.size === linesAPart) {
          await writePart()
          next = number
          onProgress(end, size)
        }
        part.set(body.externalId, { number, body, bytes: bytes?.length ?? 0 })
      } catch (error) {
        refuseLine(number, error)
      }
    }
    await writePart()
  } catch (error) {
    const why = stop.signal.aborted ? 'Stopped by a signal.' : wordsFor(error as Error)
    throw new ImportStopped(
      `${why} All lines before ${next} are done: continue with --from-line ${next}.`,
    )
  }
  return counts
}

const validate = validatorCompiler({
  schema: createPerson.schema.body,
  httpPart: 'body',
  method: 'POST',
  url: createPerson.url,
})

function readLine(bytes: Buffer | undefined): Body {
  if (!bytes) throw new ApiError('payload_too_large', 'The line is larger than 1 MiB.')
  const { error, value } = validate(parseJsonBody(bytes)) as { error?: Error; value: Body }
  if (error) throw error
  return value
}

const newline = 0x0a

/** Lines that are not empty; `bytes` is undefined if too long, `end` is the position in the file. */
async function* linesOf(file: FileHandle) {
  let pieces: Buffer[] = []
  let length = 0
  let number = 0
  let end = 0
  const keep = (piece: Buffer) => {
    length += piece.length
    if (length <= bodyBytesMaximum) pieces.push(piece)
    else pieces = []
  }
  const take = () => {
    const bytes = length <= bodyBytesMaximum ? Buffer.concat(pieces) : undefined
    const isEmpty = bytes !== undefined && bytes.toString('latin1').trim() === ''
    end += length + 1
    number += 1
    pieces = []
    length = 0
    return isEmpty ? undefined : { number, bytes, end }
  }
  for await (const chunk of file.createReadStream({ autoClose: false, highWaterMark: 262_144 })) {
    let start = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, start)) {
      keep(chunk.subarray(start, at))
      const line = take()
      if (line) yield line
      start = at + 1
    }
    keep(chunk.subarray(start))
  }
  const last = take()
  if (last) yield last
}
