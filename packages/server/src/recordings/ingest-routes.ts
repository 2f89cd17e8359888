import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import {
  identifyBrowser,
  type Next,
  type RecordingSettings,
  startSession,
  uploadChunk,
  withdrawBrowser,
} from '@lethe/contract/ingest.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError, invalid } from '../api-error.ts'
import { sessionPrefix } from '../blobs/blobs.ts'
import type { ReadBody } from '../http/arrivals.ts'
import { isStorable, parseJsonBody } from '../http/body.ts'
import { answerTo } from '../http/callers.ts'
import { networkOf } from '../http/network.ts'
import { isUuid } from '../http/parameters.ts'
import { pathOf } from '../http/unknown-paths.ts'
import type { Log } from '../log.ts'
import type { FindKey } from '../projects/authenticate.ts'
import { isProven, readIdentityRules } from '../projects/identity.ts'
import { suppressionsWith } from '../projects/suppressions.ts'
import { release } from '../release.ts'
import { repeat } from '../repeat.ts'
import { type InTurn, linesOf, takingTurns } from '../turns.ts'
import { createBrowserKey, destroyBrowserKeys } from './browser-keys.ts'
import { chunkBytesMaximum, readChunkBody } from './chunk-body.ts'
import { chunkWriter } from './chunk-writer.ts'
import type { FindCountry } from './countries.ts'
import { discardBrowser, type IdentifyOutcome, identify } from './identify.ts'
import { browserRetired, IngestRefusal, ingestErrorHandler, openToPages } from './ingest-answers.ts'
import { type IngestLimits, ingestGate, type Limited, uploadSlots } from './ingest-gate.ts'
import type { IngestLimitName, IngestMetrics } from './ingest-metrics.ts'
import {
  type IngestRules,
  insertBrowserWithSession,
  insertSession,
  isBrowserWorking,
  type NewSession,
} from './ingest-store.ts'
import { openQuotas, type Quotas } from './quotas.ts'
import { type Recordings, storeChunk, type UploadOutcome } from './upload.ts'

/** The limit for the body of a start or an identify. */
const smallBodyBytesMaximum = 16_384

const userAgentMaximum = 512

const sessionIdleSeconds = 30 * 60
const sessionMaximumSeconds = 24 * 3_600

export interface IngestOptions {
  recordings: Recordings
  limits: IngestLimits
  findKey: FindKey
  readBody: ReadBody
  metrics: IngestMetrics
  log: Log
  /** If absent, sessions have no country. */
  findCountry?: FindCountry | undefined
}

/** Large uncompressed chunks that are checked at a time, round robin over networks. */
const chunksCheckedAtOnce = 1

/** Concurrent writes of one network, if addresses are limited at all. Further ones wait. */
const writesOfNetworkAtOnce = 4

/** How often the usage of the day is added to the database. */
const usageSeconds = 5

/** The endpoints for browsers. All pages can read the responses, which say what to do next. */
export const ingestRoutes: FastifyPluginAsyncTypebox<IngestOptions> = async (app, options) => {
  const limiting = limitingOf(options)
  const { db, browserKeys } = options.recordings
  const gate = ingestGate({
    ...options,
    ...limiting,
    sql: db.short,
    readIdentity: (projectId) => readIdentityRules(db, browserKeys.masterKeys, projectId),
  })
  const { quotas } = limiting
  const stop = repeat('ingest.usage', usageSeconds, () => quotas.flush(), options.log)
  app.addHook('onClose', async () => {
    await stop()
    await quotas.flush().catch((error) => options.log.fault('ingest.usage', error))
  })
  app.decorateRequest('ingestRules')
  app.setErrorHandler(ingestErrorHandler(options.log))
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(openToPages)
  })
  const hasLimit = options.limits.perAddress > 0
  const inLine: InTurn = hasLimit ? linesOf(writesOfNetworkAtOnce) : (_network, work) => work()
  const gated = { ...options, ...limiting, gate, inLine }
  await app.register(smallRoutes, gated)
  await app.register(withdrawalRoutes, gated)
  await app.register(chunkRoutes, gated)
  await app.register(otherRoutes)
}

type Gated = IngestOptions & Limiting & { gate: ReturnType<typeof ingestGate>; inLine: InTurn }

interface Limiting {
  limited: Limited
  quotas: Quotas
}

/** Refuses and counts: a metric for each limit, and a log line when a daily limit is reached. */
function limitingOf({ recordings, limits, metrics, log }: IngestOptions): Limiting {
  const { bytesPerProject = 0, bytesPerAddress = 0 } = limits
  const logged = new Set<string>()
  function note(limit: IngestLimitName, projectId: number | undefined): void {
    metrics.observeRefused(limit)
    if (projectId !== undefined) quotas.countRefused(projectId)
  }
  const quotas = openQuotas(
    recordings.db.sql,
    { bytesPerProject, bytesPerAddress },
    (exceeded, projectId) => {
      note(exceeded, projectId)
      const day = new Date().toISOString().slice(0, 10)
      const line = `${exceeded} ${projectId} ${day}`
      if (!logged.has(line)) log.event('warn', 'ingest.day_is_full', { projectId, code: exceeded })
      if (logged.size > 1_000) logged.clear()
      logged.add(line)
      return new IngestRefusal('rate_limited', dayIsFull[exceeded], { next: 'stop' })
    },
  )
  return {
    quotas,
    limited(limit, projectId, work) {
      try {
        return work()
      } catch (refusal) {
        note(limit, projectId)
        throw refusal
      }
    },
  }
}

const dayIsFull = {
  bytes_per_project: 'This project has reached its recording limit for the day (UTC).',
  bytes_per_address: 'This address has reached its recording limit for the day (UTC).',
}

function takeSmallBodies(
  app: FastifyInstance,
  { gate, readBody }: Pick<Gated, 'gate' | 'readBody'>,
) {
  answerTo(app, 'public key')
  app.addHook('onRequest', (request) => gate(request, true))
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    const body = await bodyOf(readBody, request, payload, smallBodyBytesMaximum)
    return body.length === 0 ? {} : parseJsonBody(body)
  })
}

const smallRoutes: FastifyPluginAsyncTypebox<Gated> = async (
  app,
  { recordings, gate, readBody, limits, limited, inLine, findCountry },
) => {
  const { browsersPerPerson } = limits
  const suppressions = suppressionsWith(recordings.browserKeys.masterKeys)
  takeSmallBodies(app, { gate, readBody })

  app.route({
    ...startSession,
    preValidation: async (request) => {
      request.body ??= {}
    },
    handler: async ({ projectId, ingestRules, body, headers, ip }) => {
      const { browserId, url = null, sdkVersion = null, pending = false } = body
      for (const [name, text] of Object.entries({ url, sdkVersion })) {
        if (!isStorable(text ?? '')) throw invalid(`/body/${name}`, 'has U+0000')
      }
      const userAgent = headers['user-agent']?.slice(0, userAgentMaximum) ?? null
      const isBegun = !pending
      const country = findCountry?.(ip) ?? null
      const given = { url, userAgent, sdkVersion, country, isBegun }
      const session = { projectId, sessionId: randomUUID(), ...given }
      const started = await inLine(networkOf(ip), () =>
        browserId === undefined
          ? startAsNewBrowser(recordings, { ...session, browserId: randomUUID() })
          : startAsKnownBrowser(
              recordings,
              { ...session, browserId },
              limits.sessionsPerBrowser ?? 0,
            ),
      )
      if (started === 'too_many') {
        return limited('sessions_per_browser', projectId, () => {
          throw tooManySessions()
        })
      }
      const settings = settingsOf(ingestRules)
      return { next: 'continue' as const, ...started, settings }
    },
  })

  app.route({
    ...identifyBrowser,
    handler: async ({ projectId, ingestRules, body, ip }) => {
      const { browserId, userId, userHash } = body
      if (!isStorable(userId)) throw invalid('/body/userId', 'has U+0000')
      if (!(await isProven(ingestRules.identity, userId, userHash))) {
        throw new IngestRefusal('forbidden', 'The userHash does not prove this userId.', {
          next: 'continue',
        })
      }
      if (!isUuid(browserId)) throw browserRetired()
      const outcome = await inLine(networkOf(ip), () =>
        identify(recordings.db, projectId, browserId, userId, {
          browsersMaximum: browsersPerPerson,
          suppressions,
        }),
      )
      if (outcome === 'full') {
        await destroyBrowserKeys(recordings.browserKeys.sql, projectId, [browserId])
      }
      return { next: nextAfter(outcome) }
    },
  })
}

/** The browser id is the authorization: only its own page knows it. */
const withdrawalRoutes: FastifyPluginAsyncTypebox<Gated> = async (app, { recordings, ...rest }) => {
  takeSmallBodies(app, rest)
  const { db, browserKeys } = recordings

  app.route({
    ...withdrawBrowser,
    handler: async ({ projectId, ingestRules, body: { browserId } }) => {
      if (!ingestRules.allowsWithdrawal) {
        throw new IngestRefusal(
          'forbidden',
          'The project does not let browsers erase themselves.',
          {
            next: 'stop',
          },
        )
      }
      if (isUuid(browserId)) {
        // Retired first: a chunk of an active browser without a key would be a fault.
        await db.begin((tx) => discardBrowser(tx, projectId, browserId))
        await destroyBrowserKeys(browserKeys.sql, projectId, [browserId])
      }
      return { next: 'stop' as const }
    },
  })
}

function nextAfter(outcome: IdentifyOutcome): Next {
  switch (outcome) {
    case 'retired':
      throw browserRetired()
    case 'linked_elsewhere':
      return 'new_browser'
    case 'full':
      return 'stop'
    // The same response, so that it does not reveal a deletion.
    case 'linked':
    case 'ignored':
      return 'continue'
  }
}

const chunkRoutes: FastifyPluginAsyncTypebox<Gated> = async (
  app,
  { recordings, gate, readBody, limited, quotas, inLine },
) => {
  const enter = uploadSlots()
  const inTurn = takingTurns(chunksCheckedAtOnce)
  const writer = chunkWriter(recordings.db)
  answerTo(app, 'public key')
  app.addHook('onRequest', (request) => gate(request, false))
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
    bodyOf(readBody, request, payload, chunkBytesMaximum),
  )

  app.route({
    ...uploadChunk,
    handler: async ({ projectId, query, body, ip }) => {
      const { browser: browserId, session: sessionId, tab, number, key: _, ...told } = query
      if (!isUuid(browserId) || !isUuid(sessionId)) throw browserRetired()
      const place = { projectId, browserId, sessionId, tab, number }
      const chunk = (body as Buffer | undefined) ?? Buffer.alloc(0)
      const { length } = chunk
      quotas.countSent(networkOf(ip), length)
      const leave = limited('uploads_at_once', projectId, () => enter(networkOf(ip)))
      let outcome: UploadOutcome
      try {
        const gzip = await readChunkBody(chunk, (work) => inTurn(networkOf(ip), work))
        outcome = await inLine(networkOf(ip), () =>
          storeChunk(recordings, place, { gzip, ...told }, { writer }),
        )
      } finally {
        leave()
        release(chunk)
      }
      switch (outcome) {
        case 'stored':
          quotas.countStored(projectId, length)
          return { next: 'continue' as const }
        case 'in_flight':
          throw new ApiError('chunk_in_flight', 'This chunk is already being uploaded.')
        case 'refused':
          throw browserRetired()
      }
    },
  })
}

function bodyOf(
  readBody: ReadBody,
  request: FastifyRequest,
  payload: IncomingMessage,
  maximum: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    readBody(request, payload, maximum, (error, bytes) => {
      if (bytes) resolve(bytes)
      else reject(error)
    })
  })
}

type Started = Pick<NewSession, 'browserId' | 'sessionId'>

/**
 * Creates the key before the browser, and the folder for blobs before the session: a crash in between
 * leaves a key that is deleted later and an empty folder, but no browser that cannot record.
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
  sessionsMaximum: number,
): Promise<Started | 'too_many'> {
  const { projectId, browserId, sessionId } = session
  const isWorking = isUuid(browserId) && (await isBrowserWorking(db.short, projectId, browserId))
  if (!isWorking) throw browserRetired()
  const prefix = sessionPrefix(projectId, browserId, sessionId)
  await blobs.open(prefix)
  if (await insertSession(db.sql, session, sessionsMaximum)) return { browserId, sessionId }
  await blobs.deletePrefix(prefix)
  if (await isBrowserWorking(db.short, projectId, browserId)) return 'too_many'
  // It was retired in between.
  throw browserRetired()
}

function tooManySessions(): IngestRefusal {
  return new IngestRefusal('rate_limited', 'This browser has started too many sessions today.', {
    next: 'stop',
  })
}

function settingsOf(rules: IngestRules): RecordingSettings {
  const { masking, sampleRate, recordsAssets: assets } = rules
  const limits = { sessionIdleSeconds, sessionMaximumSeconds, chunkBytesMaximum }
  return { masking, assets, sampleRate, ...limits }
}

const endpoints = new Set<string>(
  [startSession, identifyBrowser, uploadChunk, withdrawBrowser].map(({ url }) => url),
)

/** Other paths under /ingest: a 404 that pages can read, and preflights. */
const otherRoutes: FastifyPluginAsyncTypebox = async (app) => {
  answerTo(app, 'anyone')
  app.route({
    method: app.supportedMethods,
    url: '/ingest/*',
    schema: { hide: true },
    config: { isUnknown: true },
    // Before the body is read, whatever its type.
    onRequest: async ({ method, url, headers }, reply) => {
      const asked = headers['access-control-request-headers']
      if (!endpoints.has(pathOf(url))) {
        throw new ApiError('not_found', 'There is nothing at this path.')
      }
      if (method !== 'OPTIONS') {
        throw new ApiError('method_not_allowed', 'This path accepts only POST.', {
          headers: { allow: 'POST, OPTIONS' },
        })
      }
      reply.code(204).headers({
        'access-control-allow-methods': 'POST, OPTIONS',
        // Allows headers that pages or their monitoring add; we read none of them.
        'access-control-allow-headers': asked ?? 'content-type',
        vary: 'access-control-request-headers',
        'access-control-max-age': '86400',
      })
      return reply.send()
    },
    handler: async () => {},
  })
}
