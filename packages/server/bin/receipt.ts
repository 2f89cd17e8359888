import { readFile } from 'node:fs/promises'
import type { PublicKeys } from '@lethe/contract/receipt.ts'
import { defineCommand } from 'citty'
import {
  hashOfExternalId,
  hashOfReceipt,
  ReceiptRefused,
  verifyReceipt,
} from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { print, UsageError, withDatabase } from './command.ts'

const verify = defineCommand({
  meta: { name: 'verify', description: 'Check a receipt, and show what it states.' },
  args: {
    file: {
      type: 'positional',
      required: true,
      description: 'The receipt as the API answered it, or the signed text alone.',
    },
    jwks: {
      type: 'string',
      description:
        'A copy of /.well-known/jwks.json. Without it the keys of this installation are asked.',
    },
    previous: { type: 'string', description: 'The previous receipt of the project, to follow on.' },
    'external-id': { type: 'string', description: 'Whose erasure it has to be.' },
    json: { type: 'boolean', description: 'One line of JSON.' },
  },
  run: async ({ args }) => {
    const receipt = await readReceipt(args.file)
    const statement = await verifyReceipt(receipt, await readKeys(args.jwks))
    if (args.previous !== undefined) {
      const hash = hashOfReceipt(await readReceipt(args.previous))
      if (statement.previousReceiptHash !== hash) {
        throw new ReceiptRefused('The receipt does not follow on the previous one given.')
      }
    }
    const externalId = args['external-id']
    if (externalId !== undefined) {
      const hash = hashOfExternalId(statement.externalIdSalt, externalId)
      if (statement.externalIdHash !== hash) {
        throw new ReceiptRefused('The receipt is not for the person of this externalId.')
      }
    }
    if (args.json) print(JSON.stringify({ statement }))
    else print(`The receipt is genuine. It states:\n${JSON.stringify(statement, null, 2)}`)
  },
})

async function readReceipt(path: string): Promise<string> {
  const text = (await read(path)).trim()
  if (!text.startsWith('{')) return text
  const { receipt } = parse(text, path) as { receipt?: unknown }
  if (typeof receipt !== 'string') throw new UsageError(`There is no receipt in ${path}.`)
  return receipt
}

async function readKeys(path: string | undefined): Promise<PublicKeys> {
  if (path !== undefined) return parse(await read(path), path) as PublicKeys
  let keys: PublicKeys | undefined
  await withDatabase(async ({ db }) => {
    keys = await publicKeys(db.sql)
  })
  return keys as PublicKeys
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    throw new UsageError(`The file ${path} cannot be read.`)
  }
}

function parse(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`The file ${path} is not valid JSON.`)
  }
}

export const receipt = defineCommand({
  meta: { name: 'receipt', description: 'Check receipts of completed erasures.' },
  subCommands: { verify },
})
