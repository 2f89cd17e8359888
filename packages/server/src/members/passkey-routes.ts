import {
  addPasskey,
  listPasskeys,
  removePasskey,
  startPasskey,
  startPasskeyUse,
} from '@lethe/contract/dashboard-members.ts'
import { ApiError } from '../api-error.ts'
import { isStorable } from '../http/body.ts'
import { writeAudit } from './audit-store.ts'
import { actorOf, memberOf } from './authenticate.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { deletePasskey, listPasskeys as listRows } from './passkey-store.ts'
import { addPasskey as add, creationOptions, requestOptions } from './passkeys.ts'
import { waitingSignInOf } from './sign-in.ts'
import { findMember } from './store.ts'
import { limitChallenges, limitProofs } from './tries.ts'

/** The passkeys of a member. They are used in a sign-in or a proof. */
export function passkeyRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...listPasskeys,
    handler: async (request) => ({ passkeys: await listRows(db.sql, memberOf(request).memberId) }),
  })

  app.route({
    ...startPasskey,
    handler: async (request) => {
      const { memberId, signInId } = memberOf(request)
      await limitChallenges(db.sql, { signInId, memberId })
      const member = await findMember(db.sql, memberId)
      // Its recovery codes help if a passkey is lost.
      if (!member?.hasSecondFactor) {
        throw new ApiError('invalid_request', 'Set up an authenticator first.')
      }
      return { options: { ...(await creationOptions(context, request, member)) } }
    },
  })

  app.route({
    ...addPasskey,
    handler: async (request) => {
      const { memberId, signInId } = memberOf(request)
      await limitProofs(db.sql, signInId)
      const { name } = request.body
      const passkey = await add(context, request, memberId, name, request.body.passkey)
      const subject = { kind: 'member', id: memberId } as const
      const details = { name }
      const actor = actorOf(request)
      await writeAudit(db.sql, { ...actor, action: 'member.passkey_added', subject, details })
      return { passkey }
    },
  })

  app.route({
    ...removePasskey,
    handler: async (request) => {
      const { memberId } = memberOf(request)
      const { passkeyId } = request.params
      const name = isStorable(passkeyId)
        ? await deletePasskey(db.sql, memberId, passkeyId)
        : undefined
      if (name === undefined)
        throw new ApiError('invalid_request', 'This member has no such passkey.')
      const subject = { kind: 'member', id: memberId } as const
      const details = { name }
      const actor = actorOf(request)
      await writeAudit(db.sql, { ...actor, action: 'member.passkey_removed', subject, details })
      return {}
    },
  })

  app.route({
    ...startPasskeyUse,
    handler: async (request) => {
      const { signedIn } = request
      const waiting = signedIn ? undefined : await waitingSignInOf(context, request)
      const memberId = signedIn?.memberId ?? waiting?.member.id
      if (memberId === undefined) return { options: null }
      await limitChallenges(db.sql, { signInId: signedIn?.signInId, memberId })
      const options = await requestOptions(context, request, memberId)
      return { options: options ? { ...options } : null }
    },
  })
}
