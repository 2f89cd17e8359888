import {
  getMe,
  signIn as signInEndpoint,
  signInWithCode,
  signOut,
} from '@lethe/contract/dashboard-members.ts'
import { ApiError } from '../api-error.ts'
import type { DashboardApp, DashboardContext } from '../dashboard/context.ts'
import { publicUrlOf } from '../dashboard/origin.ts'
import { headersOf, relayCookies } from './authenticate.ts'
import { permissionsOf } from './permissions.ts'
import { noteSignedIn, signInByPassword } from './sign-in.ts'
import { findMember, hasOwner } from './store.ts'
import { limitTries } from './tries.ts'

export function signInRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db, signIn } = context

  app.route({
    ...getMe,
    handler: async (request) => {
      const { signedIn } = request
      const member = signedIn ? await findMember(db.short, signedIn.memberId) : undefined
      return {
        member: member ?? null,
        permissions: member ? permissionsOf(member) : [],
        isSetUpNeeded: !member && !(await hasOwner(db.short)),
        publicUrl: publicUrlOf(request, context.publicUrl),
        replayUrl: context.replayUrl,
        version: member ? context.version : '',
      }
    },
  })

  app.route({
    ...signInEndpoint,
    handler: async (request, reply) => {
      const { password } = request.body
      const email = request.body.email.toLowerCase()
      await limitTries(db.sql, 'address', request.ip)
      await limitTries(db.sql, 'member', email)
      return { next: await signInByPassword(context, request, reply, { email, password }) }
    },
  })

  app.route({
    ...signInWithCode,
    handler: async (request, reply) => {
      const code = request.body.code.replaceAll(/\s/g, '')
      await limitTries(db.sql, 'address', request.ip)
      const input = { body: { code }, headers: headersOf(request), asResponse: true } as const
      const answer = /^\d{6}$/.test(code)
        ? await (await signIn()).api.verifyTOTP(input)
        : await (await signIn()).api.verifyBackupCode(input)
      relayCookies(answer.headers, request, reply)
      if (!answer.ok) throw wrongCode(answer)
      const { user } = (await answer.json()) as { user: { id: string } }
      await noteSignedIn(db.sql, user.id)
      return {}
    },
  })

  app.route({
    ...signOut,
    handler: async (request, reply) => {
      const answer = await (await signIn()).api.signOut({
        headers: headersOf(request),
        asResponse: true,
      })
      relayCookies(answer.headers, request, reply)
      return {}
    },
  })
}

function wrongCode({ status }: Response): ApiError {
  return status === 429
    ? new ApiError('rate_limited', 'Too many wrong codes; wait a quarter of an hour.', {
        headers: { 'retry-after': '900' },
      })
    : new ApiError('credentials_wrong', 'The code is wrong, or it took too long: sign in anew.')
}
