import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { PublicKeys } from '@lethe/contract/receipt.ts'
import { defineCommand } from 'citty'
import { hasCluster } from '../src/embedded/cluster.ts'
import { compareAnchors, readAnchors } from '../src/erasure/anchors.ts'
import {
  hashOfExternalId,
  hashOfReceipt,
  ReceiptRefused,
  verifyPurge,
  verifyReceipt,
} from '../src/erasure/receipts.ts'
import { publicKeys } from '../src/erasure/signing-keys.ts'
import { json, print, UsageError, withDatabase } from './command.ts'
import { readSettings } from './settings.ts'

const verify = defineCommand({
  meta: { name: 'verify', description: 'Check a receipt, and show what it states.' },
  args: {
    file: {
      type: 'positional',
      required: true,
      description:
        'A file with the response of the API, or only the signed text; - reads standard input.',
    },
    jwks: {
      type: 'string',
      description:
        'A file with a copy of /.well-known/jwks.json. Without it, the keys of this installation are used.',
    },
    previous: {
      type: 'string',
      description: "A file with the project's previous receipt; checks that this one follows it.",
    },
    'external-id': {
      type: 'string',
      description: 'Check that the erasure was of this externalId.',
    },
    json,
  },
  run: async ({ args }) => {
    const { receipt, purge } = await readReceipt(args.file)
    const keys = await readKeys(args.jwks)
    const statement = await verifyReceipt(receipt, keys)
    const purged = purge === undefined ? undefined : await verifyPurge(purge, keys, receipt)
    if (args.previous !== undefined) {
      const hash = hashOfReceipt((await readReceipt(args.previous)).receipt)
      if (statement.previousReceiptHash !== hash) {
        throw new ReceiptRefused('This receipt does not follow the given previous receipt.')
      }
    }
    const externalId = args['external-id']
    if (externalId !== undefined) {
      const hash = hashOfExternalId(statement.externalIdSalt, externalId)
      if (statement.externalIdHash !== hash) {
        throw new ReceiptRefused('The receipt is genuine, but for a different person.')
      }
    }
    if (args.json) {
      print(JSON.stringify({ statement, ...(purged && { purge: purged }) }))
      return
    }
    print(`The receipt is genuine. It states:\n${JSON.stringify(statement, null, 2)}`)
    if (purged) print(`As of ${purged.purgedAt}, the database files hold nothing of the person.`)
  },
})

const anchors = defineCommand({
  meta: {
    name: 'anchors',
    description: 'Compare the receipts of this installation with a file of anchors (ANCHOR_FILE).',
  },
  args: {
    file: { type: 'positional', required: true, description: 'A file with one anchor per line.' },
    json,
  },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      const statements = await readAnchors(await read(args.file), await publicKeys(db.sql))
      const receipts = await compareAnchors(db.sql, statements)
      const counts = { anchors: statements.length, receipts }
      if (args.json) print(JSON.stringify(counts))
      else print(`All ${receipts} receipts match the ${statements.length} anchors.`)
    }),
})

async function readReceipt(path: string): Promise<{ receipt: string; purge?: string }> {
  const given = (path === '-' ? await text(process.stdin) : await read(path)).trim()
  if (!given.startsWith('{')) return { receipt: given }
  const { receipt, purge } = parse(given, path) as { receipt?: unknown; purge?: unknown }
  if (typeof receipt !== 'string') throw new UsageError(`There is no receipt in ${path}.`)
  return { receipt, ...(typeof purge === 'string' && { purge }) }
}

async function readKeys(path: string | undefined): Promise<PublicKeys> {
  if (path !== undefined) {
    const keys = parse(await read(path), path) as PublicKeys | null
    if (!Array.isArray(keys?.keys)) throw new UsageError(`There is no list of keys in ${path}.`)
    return keys
  }
  const { DATABASE_URL, DATA_DIR } = readSettings()
  if (DATABASE_URL === '' && !hasCluster(DATA_DIR)) {
    throw new UsageError(
      'There is no installation here to take the keys from: name a copy of its /.well-known/jwks.json with --jwks.',
    )
  }
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
  subCommands: { verify, anchors },
})
