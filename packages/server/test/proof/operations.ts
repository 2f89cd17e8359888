import { gzipSync } from 'node:zlib'
import type { Properties } from '@lethe/contract/person.ts'
import { runAttempts, runNextAttempt } from '../../src/erasure/attempt.ts'
import {
  type ClaimedJob,
  claimJobs,
  noteProgress,
  reapLostAttempts,
  takeOver,
  togetherMaximum,
} from '../../src/erasure/job-leases.ts'
import { reapplyLedger } from '../../src/erasure/reapply.ts'
import { personWriter } from '../../src/persons/writer.ts'
import { type ChunkWriter, chunkWriter } from '../../src/recordings/chunk-writer.ts'
import { packSession } from '../../src/recordings/pack.ts'
import { collectDeadChunks, type Recordings, storeChunk } from '../../src/recordings/upload.ts'
import { expireRecordings } from '../../src/retention/retention.ts'
import type { TestProject } from '../fixtures.ts'
import { asStep } from './scheduler.ts'
import { retryDelaysSeconds, type World } from './world.ts'

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: responses of many shapes
  json: any
}

export interface Place {
  browserId: string
  sessionId: string
}

/** Everything that actors can do. Requests go through the whole app. */
export type Operations = ReturnType<typeof operationsOf>

export function operationsOf(world: World, project: TestProject = world.project) {
  const { options, recordings } = world
  const { db } = options
  const writePerson = personWriter(db)

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
    /** POSTs that reach the writer in one turn of the event loop, which requests cannot ensure. */
    postTogether: (externalIds: string[], properties: Properties) =>
      Promise.all(
        externalIds.map(async (externalId): Promise<Answer> => {
          const { id: projectId } = project
          const write = { projectId, externalId, properties, createMissing: true }
          const { outcome } = await writePerson(write, 100)
          return { status: statusOf[outcome] ?? 500, json: undefined }
        }),
      ),
    get: (externalId: string) => send('GET', `/v1/persons/${externalId}`),
    remove: (externalId: string, keepRecordings = false) =>
      send('DELETE', `/v1/persons/${externalId}?keepRecordings=${keepRecordings}`),
    start: (browserId?: string) => ingest(`start?${key}`, JSON.stringify({ browserId })),
    identify: (browserId: string, userId: string) =>
      ingest(`identify?${key}`, JSON.stringify({ browserId, userId })),
    withdraw: (browserId: string) => ingest(`withdraw?${key}`, JSON.stringify({ browserId })),
    chunk: ({ browserId, sessionId }: Place, number: number, tab = 't') =>
      ingest(
        `chunks?${key}&browser=${browserId}&session=${sessionId}&tab=${tab}&number=${number}`,
        gzipSync(`{"type":3,"timestamp":${number}}\n`),
      ),
    /** Chunks of several sessions. Their intents share a commit, and so do their confirmations. */
    chunksTogether: (places: Place[], number: number) =>
      storeTogether(recordings, project.id, places, number),
    /** A worker's next attempt at a due job. */
    attempt: (stopping?: AbortSignal) =>
      stopping ? attemptThatStops(world, stopping) : runNextAttempt(options),
    /** The same for all jobs that can be processed together. */
    attemptTogether: () => runNextAttempt(options, togetherMaximum),
    claim: () => claimJobs(db.sql, 1),
    renew: (job: ClaimedJob) =>
      noteProgress(db.sql, [job], { step: 'delete_blobs', removed: new Map() }, true),
    takeOver: (jobId: string) => takeOver(db.sql, project.id, jobId),
    reap: () => reapLostAttempts(db.sql, retryDelaysSeconds),
    reapply: () => reapplyLedger(options),
    pack: ({ browserId, sessionId }: Place) =>
      packSession(recordings, {
        projectId: project.id,
        browserId,
        id: sessionId,
        startedAt: '',
        lastChunkAt: null,
      }),
    /** The events of a session, as the server API returns them. */
    readEvents: async ({ sessionId }: Place) => {
      const authorization = `Bearer ${project.secretKey}`
      const url = `/v1/sessions/${sessionId}/events`
      return (await world.app().inject({ url, headers: { authorization } })).body
    },
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

async function storeTogether(
  recordings: Recordings,
  projectId: number,
  places: Place[],
  number: number,
): Promise<Answer[]> {
  const { intend, confirm } = chunkWriter(recordings.db)
  const { promise: allArePut, resolve } = Promise.withResolvers<void>()
  let awaited = places.length
  const arrive = () => {
    awaited -= 1
    if (awaited === 0) resolve()
  }
  const storeOne = async (place: Place): Promise<Answer> => {
    let isPut = false
    const writer: ChunkWriter = {
      intend,
      async confirm(chunk) {
        isPut = true
        arrive()
        await allArePut
        return confirm(chunk)
      },
    }
    const chunk = { gzip: gzipSync(`{"type":3,"timestamp":${number}}\n`) }
    const whole = { projectId, ...place, tab: 't', number }
    try {
      const outcome = await storeChunk(recordings, whole, chunk, { writer })
      return { status: statusOf[outcome] ?? 500, json: undefined }
    } finally {
      if (!isPut) arrive()
    }
  }
  return Promise.all(places.map(storeOne))
}

const statusOf: Record<string, number> = {
  stored: 200,
  in_flight: 409,
  refused: 410,

  created: 201,
  updated: 200,
  unchanged: 200,
  deleting: 409,
}

function jsonOf(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text)
}

/** Returns the body, or throws if the request failed. For use before a schedule. */
export async function done(answer: Promise<Answer>): Promise<Answer['json']> {
  const { status, json } = await answer
  if (status >= 300) throw new Error(`The response was ${status} ${JSON.stringify(json)}.`)
  return json
}

export interface Recorded {
  externalId: string
  places: Place[]
}

/** Creates a person with recordings as browsers do; the first session is anonymous at first. */
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
