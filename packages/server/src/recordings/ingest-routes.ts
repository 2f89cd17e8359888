import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  identifyBrowser,
  type RecordingSettings,
  startSession,
  uploadChunk,
} from '@lethe/contract/ingest.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { sessionPrefix } from '../blobs/blobs.ts'
import { isStorable, parseJsonBody } from '../json-body.ts'
import type { Log } from '../log.ts'
import { isUuid } from '../uuid.ts'
import { createBrowserKey } from './browser-keys.ts'
import { chunkBytesMaximum, readChunkBody } from './chunk-body.ts'
import { browserRetired, IngestRefusal, ingestErrorHandler, openToPages } from './ingest-answers.ts'
import { type IngestLimits, ingestGate, uploadGate } from './ingest-gate.ts'
import {
  type IngestRules,
  identify,
  insertBrowserWithSession,
  insertSession,
  isBrowserWorking,
  type NewSession,
} from './ingest-store.ts'
import { type Recordings, storeChunk } from './upload.ts'

/** A start or an identify: two ids, a URL and some words. */
const smallBodyBytesMaximum = 16_384

const userAgentMaximum = 512

const sessionIdleSeconds = 30 * 60
const sessionMaximumSeconds = 24 * 3_600

export interface IngestOptions {
  recordings: Recordings
  limits: IngestLimits
  log: Log
}

/** What browsers speak; see the contract. Every answer is open to pages and says what comes next. */
export const ingestRoutes: FastifyPluginAsyncTypebox<IngestOptions> = async (app, options) => {
  const gate = ingestGate(options.recordings.db.short, options.limits, options.log)
  app.decorateRequest('ingestRules')
  app.setErrorHandler(ingestErrorHandler(options.log))
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(openToPages)
  })
  await app.register(smallRoutes, { ...options, gate })
  await app.register(chunkRoutes, { ...options, gate })
  await app.register(otherRoutes)
}

type Gated = IngestOptions & { gate: ReturnType<typeof ingestGate> }

const smallRoutes: FastifyPluginAsyncTypebox<Gated> = async (app, { recordings, gate }) => {
  app.addHook('onRequest', (request) => gate(request, true))
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer', bodyLimit: smallBodyBytesMaximum },
    async (_request: FastifyRequest, body: Buffer) =>
      body.length === 0 ? {} : parseJsonBody(body),
  )

  app.route({
    ...startSession,
    preValidation: async (request) => {
      request.body ??= {}
    },
    handler: async ({ projectId, ingestRules, body, headers }) => {
      const { browserId, url = null, sdkVersion = null } = body
      for (const [name, text] of Object.entries({ url, sdkVersion })) {
        if (!isStorable(text ?? '')) throw invalid(`/body/${name}`, 'has U+0000')
      }
      const userAgent = headers['user-agent']?.slice(0, userAgentMaximum) ?? null
      const session = { projectId, sessionId: randomUUID(), url, userAgent, sdkVersion }
      const started =
        browserId === undefined
          ? await startAsNewBrowser(recordings, { ...session, browserId: randomUUID() })
          : await startAsKnownBrowser(recordings, { ...session, browserId })
      const settings = settingsOf(ingestRules)
      return { next: 'continue' as const, ...started, settings }
    },
  })

  app.route({
    ...identifyBrowser,
    handler: async ({ projectId, ingestRules, body }) => {
      const { browserId, userId, userHash } = body
      if (!isStorable(userId)) throw invalid('/body/userId', 'has U+0000')
      if (!isSigned(ingestRules, userId, userHash)) {
        throw new IngestRefusal('forbidden', 'The userHash is not the one of this userId.', {
          next: 'continue',
        })
      }
      const outcome = isUuid(browserId)
        ? await identify(recordings.db, projectId, browserId, userId)
        : 'retired'
      if (outcome === 'retired') throw browserRetired()
      // One answer for a person that took the link and for one that is being deleted.
      return {
        next: outcome === 'linked_elsewhere' ? ('new_browser' as const) : ('continue' as const),
      }
    },
  })
}

const chunkRoutes: FastifyPluginAsyncTypebox<Gated> = async (app, { recordings, gate }) => {
  const letUploadIn = uploadGate()
  app.addHook('onRequest', async (request, reply) => {
    await gate(request, false)
    letUploadIn(request, reply)
  })
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer', bodyLimit: chunkBytesMaximum },
    async (_request: FastifyRequest, body: Buffer) => body,
  )

  app.route({
    ...uploadChunk,
    handler: async ({ projectId, query, body }) => {
      const { browser: browserId, session: sessionId, tab, number, pages = 0 } = query
      if (!isUuid(browserId) || !isUuid(sessionId)) throw browserRetired()
      const gzip = await readChunkBody((body as Buffer | undefined) ?? Buffer.alloc(0))
      const place = { projectId, browserId, sessionId, tab, number }
      switch (await storeChunk(recordings, place, { gzip, pages })) {
        case 'stored':
          return { next: 'continue' as const }
        case 'in_flight':
          throw new ApiError('chunk_in_flight', 'This chunk is being uploaded already.')
        case 'refused':
          throw browserRetired()
      }
    },
  })
}

type Started = Pick<NewSession, 'browserId' | 'sessionId'>

/**
 * The key comes before the browser, and the place for blobs before the session: a crash in between
 * leaves a key that is collected and an empty place, and no browser that could not record.
 */
async function startAsNewBrowser(
  { db, blobs, browserKeys }: Recordings,
  session: NewSession,
): Promise<Started> {
  const { projectId, browserId, sessionId } = session
  await createBrowserKey(browserKeys, projectId, browserId)
  await blobs.open(sessionPrefix(projectId, browserId, sessionId))
  await insertBrowserWithSession(db.sql, session)
  return { browserId, sessionId }
}

async function startAsKnownBrowser(
  { db, blobs }: Recordings,
  session: NewSession,
): Promise<Started> {
  const { projectId, browserId, sessionId } = session
  const isWorking = isUuid(browserId) && (await isBrowserWorking(db.short, projectId, browserId))
  if (!isWorking) throw browserRetired()
  const prefix = sessionPrefix(projectId, browserId, sessionId)
  await blobs.open(prefix)
  if (!(await insertSession(db.sql, session))) {
    // It was retired in between.
    await blobs.deletePrefix(prefix)
    throw browserRetired()
  }
  return { browserId, sessionId }
}

function settingsOf({ masking, sampleRate }: IngestRules): RecordingSettings {
  return { masking, sampleRate, sessionIdleSeconds, sessionMaximumSeconds, chunkBytesMaximum }
}

function isSigned({ identifySecret }: IngestRules, userId: string, userHash?: string): boolean {
  if (identifySecret === null) return true
  const expected = createHmac('sha256', identifySecret).update(userId).digest()
  const given = Buffer.from(/^[0-9a-f]{64}$/i.test(userHash ?? '') ? (userHash ?? '') : '', 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const endpoints = new Set<string>([startSession.url, identifyBrowser.url, uploadChunk.url])

/** What else lies under /ingest is answered here, so that it is open to pages as well. */
const otherRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.route({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    url: '/ingest/*',
    schema: { hide: true },
    // Before a body is read, of whatever type it is.
    onRequest: async ({ method, url }, reply) => {
      if (!endpoints.has(url.split('?')[0] ?? '')) {
        throw new ApiError('not_found', 'There is nothing at this path.')
      }
      if (method !== 'OPTIONS') {
        throw new ApiError('method_not_allowed', 'This path takes POST.', {
          headers: { allow: 'POST, OPTIONS' },
        })
      }
      reply.code(204).headers({
        'access-control-allow-methods': 'POST, OPTIONS',
        'access-control-allow-headers': 'content-type',
        'access-control-max-age': '86400',
      })
      return reply.send()
    },
    handler: async () => {},
  })
}
