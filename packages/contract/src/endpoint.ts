import { type TSchema, Type } from 'typebox'

interface Parts {
  params?: TSchema
  querystring?: TSchema
  body?: TSchema
  response: Record<number, TSchema>
}

/** An endpoint is a route of Fastify without its handler. */
export function endpoint<
  const Id extends string,
  const Method extends string,
  const Url extends string,
  const Schema extends Parts,
>(operationId: Id, method: Method, url: Url, schema: Schema) {
  return { method, url, schema: { operationId, ...schema } } as const
}

/** An endpoint of the dashboard's own API. */
export function ofDashboard<
  const Id extends string,
  const Method extends string,
  const Path extends string,
  const Schema extends Parts,
>(operationId: Id, method: Method, path: Path, schema: Schema) {
  return endpoint(operationId, method, `/dashboard/v1${path}`, schema)
}

/** The prefix of all paths of a project; ids are decimal text. */
const ProjectPath = Type.Object({ projectId: Type.String() })

/** An endpoint of a project. Without `params` its path has no other parameter. */
export function ofProject<
  const Id extends string,
  const Method extends string,
  const Path extends string,
  const Schema extends Parts,
>(operationId: Id, method: Method, path: Path, schema: Schema) {
  const whole = { params: ProjectPath, ...schema } as { params: typeof ProjectPath } & Schema
  return ofDashboard(operationId, method, `/projects/:projectId${path}`, whole)
}
