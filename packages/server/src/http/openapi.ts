import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger'
import { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { ErrorBody } from '@lethe/contract/errors.ts'
import { IngestErrorBody, RecordingSettings } from '@lethe/contract/ingest.ts'
import { Person } from '@lethe/contract/person.ts'
import { Session, SessionTab } from '@lethe/contract/session.ts'

export const openApiOptions = (basePath: string): FastifyDynamicSwaggerOptions => ({
  // The dashboard's own API is for its pages.
  hideUntagged: true,
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'Lethe',
      description: 'Person records and provable erasure for session recording.',
      version: '1.0.0',
    },
    tags: [
      { name: 'persons', description: "The records of the customer's users." },
      { name: 'deletion jobs', description: 'The requests for erasure, and their proof.' },
      { name: 'sessions', description: 'What was recorded.' },
      { name: 'ingestion', description: 'What browsers send, with a public key.' },
    ],
    servers: [{ url: `${basePath}/`, description: 'The service that serves this description.' }],
    components: {
      securitySchemes: {
        secretKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A secret key of the project (sk_…), from a backend only.',
        },
      },
    },
    security: [{ secretKey: [] }],
  },
  transformObject: (given) => {
    // Copied, because the router validates with these schemas.
    const document = structuredClone(
      'openapiObject' in given ? given.openapiObject : {},
    ) as Document
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const operation of Object.values(operations)) complete(path, operation)
    }
    document.paths = withNames(document.paths) as Document['paths']
    document.components.schemas = Object.fromEntries(
      Object.entries(named).map(([name, schema]) => [name, withNames(plain(schema), name)]),
    )
    return document as never
  },
})

interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas?: Record<string, unknown> }
}

interface Operation {
  operationId: string
  parameters?: { in: string; required?: boolean; schema: { default?: unknown } }[]
  requestBody?: { content: Record<string, unknown>; required?: boolean }
  responses: Record<string, { description: string; content?: Record<string, unknown> }>
  security?: unknown[]
}

/** The named types of generated clients. */
const named = {
  Person,
  DeletionJob,
  Session,
  SessionTab,
  RecordingSettings,
  Error: ErrorBody,
  IngestError: IngestErrorBody,
}

/** A schema in the form of the document. */
const plain = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (_key, value) => {
    const { patternProperties, ...rest } = value ?? {}
    const anyKey = patternProperties?.['^.*$']
    return anyKey === undefined ? value : { ...rest, additionalProperties: anyKey }
  })

const nameOf = new Map(Object.entries(named).map(([name, schema]) => [textOf(plain(schema)), name]))

/** The same text for equal schemas, whatever the order of their keys. */
function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`
  const entries = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}:${textOf(one)}`)
  return `{${entries.sort().join()}}`
}

/** Replaces named schemas by references, except `itself`. */
function withNames(value: unknown, itself?: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  const name = nameOf.get(textOf(value))
  if (name !== undefined && name !== itself) return { $ref: `#/components/schemas/${name}` }
  if (Array.isArray(value)) return value.map((one) => withNames(one))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNames(one)]))
}

/** Adds what all routes have in common, and what a route's schema cannot express. */
function complete(path: string, operation: Operation): void {
  for (const parameter of operation.parameters ?? []) {
    if (parameter.schema.default !== undefined) parameter.required = false
  }
  const isIngestion = path.startsWith('/ingest/')
  if (isIngestion) operation.security = []
  if (operation.operationId === 'uploadChunk') {
    const schema = { type: 'string', format: 'binary' }
    operation.requestBody = { required: true, content: { 'application/octet-stream': { schema } } }
  }
  if (operation.operationId === 'readSessionEvents') {
    const response = operation.responses[200]
    if (response?.content) {
      response.content = { 'application/x-ndjson': response.content['application/json'] }
    }
  }
  const schema = plain(isIngestion ? IngestErrorBody : ErrorBody)
  for (const [status, description] of Object.entries({
    414: 'The URL is longer than 8 KiB.',
    ...(operation.requestBody && {
      408: 'The body arrives too slowly.',
      413: 'The body is too large.',
      415: 'The body is of another type.',
    }),
  })) {
    operation.responses[status] ??= { description, content: { 'application/json': { schema } } }
  }
}

/** The API page loads everything from its own origin; some of its styles are inline. */
export const docsPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
