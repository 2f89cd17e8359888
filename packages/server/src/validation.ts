import { Ajv, type ErrorObject } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { TObject, TSchema } from 'typebox'
import { ApiError } from './api-error.ts'

const ajv = new Ajv({ useDefaults: true, strict: false })
// Formats document what we answer; what we take has rules of its own in the handlers.
for (const format of ['date-time', 'uuid']) ajv.addFormat(format, true)

/**
 * Validates a part of a request. A JSON body has types of its own and is taken as given; the text
 * of a URL is read as what its schema says, and only in its plain form: `50` and `true`, not
 * `5e1`, ` 50` or `TRUE`.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const check = ajv.compile(schema)
  const read = httpPart === 'querystring' ? textReader(schema as TObject) : (data: unknown) => data
  return (data: unknown) => {
    const value = read(data)
    if (check(value)) return { value }
    return { error: refusal(httpPart ?? 'body', check.errors?.[0]) }
  }
}

function textReader(schema: TObject) {
  const readers = Object.entries(schema.properties ?? {}).map(
    ([name, property]) => [name, readerOf[(property as { type?: string }).type ?? '']] as const,
  )
  return (data: unknown) => {
    const query: Record<string, unknown> = { ...(data as object) }
    for (const [name, read] of readers) {
      const text = query[name]
      if (read && typeof text === 'string') query[name] = read(text)
    }
    return query
  }
}

const readerOf: Record<string, ((text: string) => unknown) | undefined> = {
  integer: (text) => (/^(?:0|-?[1-9][0-9]{0,8})$/.test(text) ? Number(text) : text),
  boolean: (text) => (text === 'true' ? true : text === 'false' ? false : text),
}

function refusal(httpPart: string, error: ErrorObject | undefined): ApiError {
  const path = `/${httpPart}${namedPath(error)}`
  const issue = issueOf(error)
  const where = path.slice(1).replaceAll('/', '.').replace('querystring', 'query')
  return new ApiError('invalid_request', `${where}: ${issue}.`, {
    details: [{ path: path.replace('/querystring', '/query'), issue }],
  })
}

/** Where the error is, as far as the contract names it: deeper down stand the caller's own keys. */
function namedPath(error: ErrorObject | undefined): string {
  const [, field = ''] = error?.instancePath.split('/') ?? []
  if (field !== '') return `/${field}`
  const missing = error?.keyword === 'required' && error.params.missingProperty
  return typeof missing === 'string' ? `/${missing}` : ''
}

function issueOf(error: ErrorObject | undefined): string {
  const params = error?.params ?? {}
  if (error?.propertyName !== undefined || error?.keyword === 'propertyNames') {
    return 'a key has to have 1 to 200 characters'
  }
  switch (error?.keyword) {
    case 'required':
      return 'is required'
    case 'type':
      return `has to be ${article(String(params.type))}`
    case 'minLength':
      return `has to have at least ${params.limit} character${params.limit === 1 ? '' : 's'}`
    case 'maxLength':
      return `has to have at most ${params.limit} characters`
    case 'minimum':
      return `has to be at least ${params.limit}`
    case 'maximum':
      return `has to be at most ${params.limit}`
    case 'minItems':
      return `has to have at least ${params.limit} item`
    case 'maxItems':
      return `has to have at most ${params.limit} items`
    case 'enum':
      return `has to be one of ${(params.allowedValues as string[]).join(', ')}`
    case 'additionalProperties':
      return 'has a field that this endpoint does not know'
    default:
      return 'is not valid'
  }
}

function article(type: string): string {
  return type === 'integer' || type === 'object' || type === 'array' ? `an ${type}` : `a ${type}`
}
