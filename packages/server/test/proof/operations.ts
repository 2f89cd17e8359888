import { gzipSync } from 'node:zlib'
import { runAttempts, runNextAttempt } from '../../src/erasure/attempt.ts'
import { noteProgress, reapLostAttempts } from '../../src/erasure/attempts.ts'
import { type ClaimedJob, claimJobs, takeOver, togetherMaximum } from '../../src/erasure/claim.ts'
import { reapplyLedger } from '../../src/erasure/reapply.ts'
import { expireRecordings } from '../../src/recordings/retention.ts'
import { collectDeadChunks } from '../../src/recordings/upload.ts'
import type { TestProject } from '../fixtures.ts'
import { asStep } from './scheduler.ts'
import { retryDelaysSeconds, type World } from './world.ts'

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  json: any
}

export interface Place {
  browserId: string
  sessionId: string
}

/** What anybody can do to the product: requests go through the whole app, as they come. */
export type Operations = ReturnType<typeof operationsOf>

export function operationsOf(world: World, project: TestProject = world.project) {
  const { options, recordings } = world
  const { db } = options

  async function send(method: string, path: string, body?: unknown): Promise<Answer> {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const response = await world.app().inject({
      method: method as 'GET',
      url: path,
      headers: {
        authorization: `Bearer ${project.secretKey}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
      },
      ...(payload !== undefined && { payload }),
    })
    return { status: response.statusCode, json: jsonOf(response.body) }
  }

  async function ingest(path: string, payload: string | Buffer): Promise<Answer> {
    const response = await world.app().inject({
      method: 'POST',
      url: `/ingest/v1/${path}`,
      headers: { 'content-type': 'text/plain' },
      payload,
    })
    return { status: response.statusCode, json: jsonOf(response.body) }
  }

  const key = `key=${project.publicKey}`
  return {
    post: (externalId: string, properties: object = {}) =>
      send('POST', '/v1/persons', { externalId, properties }),
    patch: (externalId: string, properties: object) =>
      send('PATCH', `/v1/persons/${externalId}`, { properties }),
    get: (externalId: string) => send('GET', `/v1/persons/${externalId}`),
    remove: (externalId: string, keepRecordings = false) =>
      send('DELETE', `/v1/persons/${externalId}?keepRecordings=${keepRecordings}`),
    start: (browserId?: string) => ingest(`start?${key}`, JSON.stringify({ browserId })),
    identify: (browserId: string, userId: string) =>
      ingest(`identify?${key}`, JSON.stringify({ browserId, userId })),
    chunk: ({ browserId, sessionId }: Place, number: number, tab = 't') =>
      ingest(
        `chunks?${key}&browser=${browserId}&session=${sessionId}&tab=${tab}&number=${number}`,
        gzipSync(`{"type":3,"timestamp":${number}}\n`),
      ),
    /** Of a worker: the next attempt at whatever is due. */
    attempt: (stopping?: AbortSignal) =>
      stopping ? attemptThatStops(world, stopping) : runNextAttempt(options),
    /** The same for whatever can be worked on together. */
    attemptTogether: () => runNextAttempt(options, togetherMaximum),
    claim: () => claimJobs(db.sql, 1),
    renew: (job: ClaimedJob) =>
      noteProgress(db.sql, [job], { step: 'delete_blobs', removed: new Map() }, true),
    takeOver: (jobId: string) => takeOver(db.sql, project.id, jobId),
    reap: () => reapLostAttempts(db.sql, retryDelaysSeconds),
    reapply: () => reapplyLedger(options),
    expire: () => expireRecordings(recordings),
    collect: () => collectDeadChunks(db.sql, recordings.blobs),
    forward: (seconds: number) =>
      asStep(`clock + ${seconds} s`, async () => {
        await world.forward(seconds)
        return `+ ${seconds} s`
      }),
  }
}

async function attemptThatStops({ options }: World, stopping: AbortSignal) {
  const sentAt = performance.now()
  const [job] = await claimJobs(options.db.sql, 1)
  return job && runAttempts(options, [job], sentAt, stopping)
}

function jsonOf(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text)
}

/** Throws unless it succeeded: for what comes before a schedule. */
export async function done(answer: Promise<Answer>): Promise<Answer['json']> {
  const { status, json } = await answer
  if (status >= 300) throw new Error(`It answered ${status} ${JSON.stringify(json)}.`)
  return json
}

export interface Recorded {
  externalId: string
  places: Place[]
}

/** A person with recordings, made the way browsers make them; the first session is anonymous. */
export async function recordPerson(
  act: Operations,
  externalId: string,
  { browsers = 1, sessions = 1, chunks = 1 } = {},
): Promise<Recorded> {
  await done(act.post(externalId, { name: 'Ada' }))
  const places: Place[] = []
  for (let browser = 0; browser < browsers; browser++) {
    let browserId: string | undefined
    for (let session = 0; session < sessions; session++) {
      const started: Place = await done(act.start(browserId))
      browserId = started.browserId
      places.push({ browserId: started.browserId, sessionId: started.sessionId })
      for (let number = 0; number < chunks; number++) await done(act.chunk(started, number))
      if (session === 0) await done(act.identify(browserId, externalId))
    }
  }
  return { externalId, places }
}
