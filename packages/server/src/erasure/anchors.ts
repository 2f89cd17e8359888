import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { AnchorStatement } from '@lethe/contract/receipt.ts'
import type { JSONWebKeySet } from 'jose'
import { syncDirectory } from '../blobs/durable.ts'
import { partsOf } from '../parts.ts'
import type { Db, Sql } from '../sql.ts'
import { readClock } from './jobs.ts'
import {
  anchorMediaType,
  hashOfReceipt,
  ReceiptRefused,
  type Signer,
  signStatement,
  verifyStatement,
} from './receipts.ts'
import { AnchorRefused, timestampOf } from './timestamps.ts'

/*
 * Each receipt contains the hash of the previous one, so the newest stands for all receipts of a
 * project. An anchor is a signed statement about the newest, stored where the operator chooses.
 * With it, nobody can replace receipts unnoticed, not even with the database and the master key.
 */

/** Where anchors are sent. Every configured place must accept. */
export interface AnchorPlaces {
  /** A file: one line of JSON per anchor, oldest first. */
  file?: string
  /** Receives the same JSON by POST. */
  url?: string
  /** A timestamp authority (RFC 3161). Its response becomes part of the anchor. */
  timestampUrl?: string
}

export interface AnchorOptions {
  db: Db
  signer: Signer
  places: AnchorPlaces
}

export interface Anchor {
  /** The signed statement, a compact JWS. */
  anchor: string
  /** The TimeStampResp for `anchor`, in base64. */
  timestamp?: string
}

const chainsAPart = 100

const requestSeconds = 20

/**
 * Anchors the chains that have grown, and returns how many. Safe to repeat and to run concurrently.
 */
export async function anchorChains({ db, signer, places }: AnchorOptions): Promise<number> {
  let count = 0
  const parts = partsOf<{ projectId: number; length: number; head: string }>(
    chainsAPart,
    (after) => db.sql`
      select project_id as "projectId", length::float8 as length, encode(head, 'hex') as head
      from receipt_chains
      where length > anchored_length and head is not null and project_id > ${after?.projectId ?? 0}
      order by project_id
      limit ${chainsAPart}`,
  )
  for await (const chains of parts) {
    for (const { projectId, length, head } of chains) {
      const anchoredAt = await readClock(db.sql)
      await send(
        places,
        await anchorOf(signer, places, {
          version: 1,
          projectId,
          number: length,
          receiptHash: head,
          anchoredAt,
        }),
      )
      await db.sql`
        update receipt_chains
        set anchored_length = greatest(anchored_length, ${length}::bigint),
          anchored_at = ${anchoredAt}::timestamptz
        where project_id = ${projectId}`
      count += 1
    }
  }
  return count
}

async function anchorOf(
  signer: Signer,
  { timestampUrl }: AnchorPlaces,
  statement: AnchorStatement,
): Promise<Anchor> {
  const anchor = await signStatement(signer, statement, anchorMediaType)
  if (timestampUrl === undefined) return { anchor }
  const signal = AbortSignal.timeout(requestSeconds * 1_000)
  const timestamp = await timestampOf(timestampUrl, anchor, signal)
  return { anchor, timestamp: timestamp.toString('base64') }
}

async function send({ file, url }: AnchorPlaces, anchor: Anchor): Promise<void> {
  const line = JSON.stringify(anchor)
  if (url !== undefined) {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      headers: { 'content-type': 'application/json' },
      body: line,
      signal: AbortSignal.timeout(requestSeconds * 1_000),
    })
    await response.body?.cancel()
    if (!response.ok) throw new AnchorRefused('url_refused')
  }
  if (file !== undefined) await appendLine(file, line)
}

async function appendLine(path: string, line: string): Promise<void> {
  const file = await open(path, 'a', 0o644)
  try {
    await file.write(`${line}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await syncDirectory(dirname(path))
}

/** Returns the statements in a file of anchors. Throws `ReceiptRefused` for an invalid line. */
export async function readAnchors(text: string, keys: JSONWebKeySet): Promise<AnchorStatement[]> {
  const statements: AnchorStatement[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    try {
      const { anchor } = JSON.parse(line) as Anchor
      statements.push((await verifyStatement(anchor, keys, anchorMediaType)) as AnchorStatement)
    } catch (cause) {
      throw new ReceiptRefused(`Line ${index + 1} is not an anchor of this installation.`, {
        cause,
      })
    }
  }
  return statements
}

const receiptsAPart = 1_000

/**
 * Checks the receipts in the database against anchors: each must contain the hash of the previous
 * one, and each anchored one must match its anchor. Returns the number of receipts. Throws
 * `ReceiptRefused` on a mismatch.
 */
export async function compareAnchors(
  sql: Sql,
  anchors: readonly AnchorStatement[],
): Promise<number> {
  const anchored = new Map<string, string>()
  for (const { projectId, number, receiptHash } of anchors) {
    const place = `${projectId} ${number}`
    const known = anchored.get(place) ?? receiptHash
    if (known !== receiptHash) throw new ReceiptRefused(`${placeWords(place)} has two anchors.`)
    anchored.set(place, receiptHash)
  }
  let count = 0
  for (const projectId of new Set(anchors.map((anchor) => anchor.projectId))) {
    let head: string | null = null
    let last = 0
    const parts = partsOf<{ number: number; jws: string }>(
      receiptsAPart,
      (after) => sql`
        select number::float8 as number, jws
        from receipts
        where project_id = ${projectId} and number > ${after?.number ?? 0}
        order by number
        limit ${receiptsAPart}`,
    )
    for await (const receipts of parts) {
      for (const { number, jws } of receipts) {
        const place = `${projectId} ${number}`
        if (number !== last + 1 || previousOf(jws) !== head) {
          throw new ReceiptRefused(`${placeWords(place)} does not follow the previous one.`)
        }
        head = hashOfReceipt(jws)
        last = number
        if ((anchored.get(place) ?? head) !== head) {
          throw new ReceiptRefused(`${placeWords(place)} differs from the one that was anchored.`)
        }
        anchored.delete(place)
        count += 1
      }
    }
  }
  const [missing] = anchored.keys()
  if (missing !== undefined) {
    throw new ReceiptRefused(`${placeWords(missing)} was anchored but is missing.`)
  }
  return count
}

function placeWords(place: string): string {
  const [projectId, number] = place.split(' ')
  return `Receipt ${number} of project ${projectId}`
}

function previousOf(jws: string): string | null | undefined {
  try {
    return JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
      .previousReceiptHash
  } catch {
    return undefined
  }
}
