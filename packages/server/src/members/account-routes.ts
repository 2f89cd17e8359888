import {
  changePassword,
  confirmSecondFactor,
  endOtherSignIns,
  listSignIns,
  removeSecondFactor,
  startSecondFactor,
  updateMe,
} from '@lethe/contract/dashboard-members.ts'
import type { AuditAction } from '@lethe/contract/dashboard-system.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { writeAudit } from '../dashboard/audit-store.ts'
import type { DashboardApp, DashboardContext } from '../dashboard/context.ts'
import type { Sql } from '../sql.ts'
import { headersOf, memberOf, relayCookies } from './authenticate.ts'
import { endOtherSignIns as endOthers, listSignIns as listRows, renameMember } from './store.ts'
import { limitTries } from './tries.ts'

/** What members do with their own name, password, second factor and sign-ins. */
export function accountRoutes(app: DashboardApp, context: DashboardContext): void {
  passwordRoutes(app, context)
  secondFactorRoutes(app, context)
  signInListRoutes(app, context)
}

function passwordRoutes(app: DashboardApp, { db, signIn }: DashboardContext): void {
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
      const { currentPassword, newPassword } = request.body
      await countTry(db.sql, request)
      const answer = await (await signIn()).api.changePassword({
        body: { currentPassword, newPassword, revokeOtherSessions: true },
        headers: headersOf(request),
        asResponse: true,
      })
      await takeAnswer(request, reply, answer, 'The current password is wrong.')
      await note(db.sql, request, 'member.password_changed')
      return {}
    },
  })
}

function secondFactorRoutes(app: DashboardApp, { db, signIn }: DashboardContext): void {
  app.route({
    ...startSecondFactor,
    handler: async (request, reply) => {
      await countTry(db.sql, request)
      const answer = await (await signIn()).api.enableTwoFactor({
        body: { password: request.body.password },
        headers: headersOf(request),
        asResponse: true,
      })
      const { totpURI, backupCodes } = await takeAnswer<{
        totpURI: string
        backupCodes: string[]
      }>(request, reply, answer, 'The password is wrong.')
      const secret = new URL(totpURI).searchParams.get('secret') ?? ''
      return { uri: totpURI, secret, recoveryCodes: backupCodes }
    },
  })

  app.route({
    ...confirmSecondFactor,
    handler: async (request, reply) => {
      await countTry(db.sql, request)
      const answer = await (await signIn()).api.verifyTOTP({
        body: { code: request.body.code.replaceAll(/\s/g, '') },
        headers: headersOf(request),
        asResponse: true,
      })
      await takeAnswer(request, reply, answer, 'The code is wrong.')
      await note(db.sql, request, 'member.second_factor_added')
      return {}
    },
  })

  app.route({
    ...removeSecondFactor,
    handler: async (request, reply) => {
      await countTry(db.sql, request)
      const answer = await (await signIn()).api.disableTwoFactor({
        body: { password: request.body.password },
        headers: headersOf(request),
        asResponse: true,
      })
      await takeAnswer(request, reply, answer, 'The password is wrong.')
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

/** Whoever sits down at a signed-in browser can try passwords and codes no faster than others. */
async function countTry(sql: Sql, request: FastifyRequest): Promise<void> {
  await limitTries(sql, 'address', request.ip)
  await limitTries(sql, 'account', memberOf(request).memberId)
}

type AccountAction = Extract<AuditAction, `member.password_${string}` | `member.second_${string}`>

async function note(sql: Sql, request: FastifyRequest, action: AccountAction): Promise<void> {
  const { memberId } = memberOf(request)
  await writeAudit(sql, { action, memberId, subject: { kind: 'member', id: memberId } })
}

/** What better-auth answered, its cookies handed on; a password or code it refuses is wrong. */
async function takeAnswer<Body>(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Response,
  refusal: string,
): Promise<Body> {
  relayCookies(answer.headers, request, reply)
  const body = (await answer.json()) as Body & { code?: string }
  if (answer.ok) return body
  if (body.code === 'TOTP_ALREADY_ENABLED') {
    throw new ApiError('invalid_request', 'There is a second factor already; remove it first.')
  }
  if (body.code === 'TOTP_NOT_ENABLED') {
    throw new ApiError('invalid_request', 'No second factor was begun; begin with start.')
  }
  throw new ApiError('credentials_wrong', refusal)
}
