import { hash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { access, type Operation, permissionsOf, ruleOf } from '../members/access.ts'
import { accountRoutes } from '../members/account-routes.ts'
import { signedInOf } from '../members/authenticate.ts'
import type { DashboardContext } from '../members/context.ts'
import { linkRoutes } from '../members/link-routes.ts'
import { refuseForeignOrigin } from '../members/origin.ts'
import { passkeyRoutes } from '../members/passkey-routes.ts'
import { refuseUnlessProven } from '../members/proofs.ts'
import { memberRoutes } from '../members/routes.ts'
import { signInRoutes } from '../members/sign-in-routes.ts'
import { findProject } from '../projects/store.ts'
import type { Db } from '../sql.ts'
import { webhookRoutes } from '../webhooks/routes.ts'
import { deletionRoutes } from './deletion-routes.ts'
import { keyRoutes } from './key-routes.ts'
import { momentRoutes, sharedRoutes } from './moment-routes.ts'
import { personRoutes } from './person-routes.ts'
import { homeRoutes, projectRoutes } from './project-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { systemRoutes } from './system-routes.ts'

/** The dashboard's API. Checks origin, sign-in and permission before anything else. */
export const dashboardRoutes: FastifyPluginAsyncTypebox<DashboardContext> = async (
  app,
  context,
) => {
  app.decorateRequest('signedIn', null)
  app.addHook('onRoute', ({ schema, url }) => {
    if (operationOf(schema) in access) return
    throw new Error(`${url} is missing from the table of permissions`)
  })
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    })
    refuseForeignOrigin(request, context.publicUrl)
    request.signedIn = (await signedInOf(context, request, reply)) ?? null
    request.isKnown = request.signedIn !== null
    refuseUnlessAllowed(request)
    const { proof } = ruleOf(operationOf(request.routeOptions.schema))
    if (proof === 'recent') await refuseUnlessProven(context.db.sql, request, proof)
    await findProjectOf(request, context.db)
  })
  app.addHook('preHandler', async (request) => {
    const { proof } = ruleOf(operationOf(request.routeOptions.schema))
    if (proof === 'recent for several') await refuseUnlessProven(context.db.sql, request, proof)
  })
  sendUnchanged(app)
  signInRoutes(app, context)
  linkRoutes(app, context)
  accountRoutes(app, context)
  passkeyRoutes(app, context)
  memberRoutes(app, context)
  projectRoutes(app, context)
  homeRoutes(app, context)
  keyRoutes(app, context)
  personRoutes(app, context)
  deletionRoutes(app, context)
  sessionRoutes(app, context)
  momentRoutes(app, context)
  sharedRoutes(app, context)
  webhookRoutes(app, context)
  systemRoutes(app, context)
}

function operationOf(schema: unknown): Operation {
  return (schema as { operationId: Operation }).operationId
}

function refuseUnlessAllowed({ signedIn, routeOptions }: FastifyRequest): void {
  const needed = ruleOf(operationOf(routeOptions.schema)).may
  if (needed === 'anyone') return
  if (!signedIn) throw new ApiError('unauthorized', 'Sign in first.')
  if (needed === 'any member' || permissionsOf(signedIn).includes(needed)) return
  throw new ApiError('forbidden', `This needs the permission ${needed}.`)
}

async function findProjectOf(request: FastifyRequest, db: Db): Promise<void> {
  const { projectId: id } = request.params as { projectId?: string }
  if (id === undefined) return
  const project = /^[1-9]\d{0,8}$/.test(id) ? await findProject(db.short, Number(id)) : undefined
  if (!project) throw new ApiError('project_not_found', 'No project with this id.')
  request.projectId = project.id
}

/**
 * Responds with 304 if a GET has the same result as before. Pages poll every second or two, which works
 * through any proxy and with any number of processes.
 */
function sendUnchanged(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    if (request.method !== 'GET' || reply.statusCode !== 200 || typeof payload !== 'string') {
      return payload
    }
    const etag = `"${hash('sha256', payload, 'base64url').slice(0, 27)}"`
    reply.header('etag', etag)
    if (request.headers['if-none-match'] !== etag) return payload
    reply.code(304).removeHeader('content-type')
    return ''
  })
}
