import {
  changePassword,
  checkProof,
  confirmSecondFactor,
  endOtherSignIns,
  listSignIns,
  proveIdentity,
  removeSecondFactor,
  startSecondFactor,
  updateMe,
} from '@lethe/contract/dashboard-members.ts'
import type { AuditAction } from '@lethe/contract/dashboard-system.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { Sql } from '../sql.ts'
import { writeAudit } from './audit-store.ts'
import { actorOf, headersOf, memberOf } from './authenticate.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { relayCookies } from './cookies.ts'
import { deletePasskeysOf } from './passkey-store.ts'
import { isRecentlyProven, prove, refuseUnread, tryCode } from './proofs.ts'
import {
  deleteLinksOf,
  deleteWaitingSignIns,
  endOtherSignIns as endOthers,
  listSignIns as listRows,
  noteProof,
  renameMember,
} from './store.ts'
import { limitProofs } from './tries.ts'

/** A member's own name, password, second factor and sign-ins. */
export function accountRoutes(app: DashboardApp, context: DashboardContext): void {
  passwordRoutes(app, context)
  secondFactorRoutes(app, context)
  signInListRoutes(app, context)
}

function passwordRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, signIn } = context

  app.route({
    ...updateMe,
    handler: async (request) => {
      const member = await renameMember(db.sql, memberOf(request).memberId, request.body.name)
      if (!member) throw new ApiError('unauthorized', 'This member was removed.')
      return { member }
    },
  })

  app.route({
    ...changePassword,
    handler: async (request, reply) => {
      const { currentPassword, newPassword, ...factor } = request.body
      const { id } = await prove(context, request, { ...factor, password: currentPassword })
      const response = await (await signIn()).api.changePassword({
        body: { currentPassword, newPassword, revokeOtherSessions: true },
        headers: headersOf(request),
        asResponse: true,
      })
      const { token } = await relay<{ token: string }>(request, reply, response)
      await noteProof(db.sql, { token })
      // The old password may have been stolen.
      await db.begin(async (tx) => {
        await deleteLinksOf(tx, id)
        await deleteWaitingSignIns(tx, id)
      })
      await note(db.sql, request, 'member.password_changed')
      return {}
    },
  })

  app.route({
    ...checkProof,
    handler: async (request) => ({ isRecent: await isRecentlyProven(db.sql, request) }),
  })

  app.route({
    ...proveIdentity,
    handler: async (request) => {
      await prove(context, request, request.body)
      await noteProof(db.sql, { id: memberOf(request).signInId })
      return {}
    },
  })
}

function secondFactorRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, signIn } = context

  app.route({
    ...startSecondFactor,
    handler: async (request, reply) => {
      const { password } = request.body
      const { hasSecondFactor } = await prove(context, request, request.body)
      if (hasSecondFactor) throw alreadyThere()
      await noteProof(db.sql, { id: memberOf(request).signInId })
      const response = await (await signIn()).api.enableTwoFactor({
        body: { password },
        headers: headersOf(request),
        asResponse: true,
      })
      const { totpURI, backupCodes } = await relay<{
        totpURI: string
        backupCodes: string[]
      }>(request, reply, response)
      const secret = new URL(totpURI).searchParams.get('secret') ?? ''
      return { uri: totpURI, secret, recoveryCodes: backupCodes }
    },
  })

  app.route({
    ...confirmSecondFactor,
    handler: async (request, reply) => {
      const { memberId, signInId } = memberOf(request)
      await limitProofs(db.sql, signInId)
      const response = await tryCode(context, headersOf(request), memberId, request.body.code)
      if (!response) throw codeWrong()
      await relay(request, reply, response)
      await noteProof(db.sql, { token: tokenOf(response) })
      await note(db.sql, request, 'member.second_factor_added')
      return {}
    },
  })

  app.route({
    ...removeSecondFactor,
    handler: async (request, reply) => {
      const { password } = request.body
      const { id } = await prove(context, request, request.body)
      await deletePasskeysOf(db.sql, id)
      const response = await (await signIn()).api.disableTwoFactor({
        body: { password },
        headers: headersOf(request),
        asResponse: true,
      })
      await relay(request, reply, response)
      await note(db.sql, request, 'member.second_factor_removed')
      return {}
    },
  })
}

function signInListRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...listSignIns,
    handler: async (request) => {
      const { memberId, signInId } = memberOf(request)
      return { signIns: await listRows(db.sql, memberId, signInId) }
    },
  })

  app.route({
    ...endOtherSignIns,
    handler: async (request) => {
      const { memberId, signInId } = memberOf(request)
      await endOthers(db.sql, memberId, signInId)
      return {}
    },
  })
}

type AccountAction = Extract<
  AuditAction,
  'member.password_changed' | `member.second_factor_${'added' | 'removed'}`
>

async function note(sql: Sql, request: FastifyRequest, action: AccountAction): Promise<void> {
  const actor = actorOf(request)
  await writeAudit(sql, {
    ...actor,
    action,
    subject: { kind: 'member', id: memberOf(request).memberId },
  })
}

/** The token of the new sign-in, from its cookie: the body has that of the previous one. */
function tokenOf(response: Response): string {
  const cookies = response.headers.getSetCookie().join('\n')
  const [, value = ''] = /\.session_token=([^;\n]+)/.exec(cookies) ?? []
  // A signature follows.
  return decodeURIComponent(value).split('.')[0] ?? ''
}

/** Relays the cookies of better-auth's response and returns its body; throws if it refused. */
async function relay<Body>(
  request: FastifyRequest,
  reply: FastifyReply,
  response: Response,
): Promise<Body> {
  relayCookies(response.headers, request, reply)
  const body = (await response.json()) as Body & { code?: string }
  if (response.ok) return body
  refuseUnread(body)
  if (body.code === 'TOTP_ALREADY_ENABLED') throw alreadyThere()
  if (body.code === 'TOTP_NOT_ENABLED') {
    throw new ApiError(
      'invalid_request',
      'The setup of a second factor was not started; start it first.',
    )
  }
  throw codeWrong()
}

function alreadyThere(): ApiError {
  return new ApiError('invalid_request', 'There is already a second factor; remove it first.')
}

function codeWrong(): ApiError {
  return new ApiError('credentials_wrong', 'The code is wrong, or it was used before.')
}
