import { betterAuth } from 'better-auth'
import { APIError, createAuthEndpoint } from 'better-auth/api'
import { expireCookie, setSessionCookie } from 'better-auth/cookies'
import { twoFactor } from 'better-auth/plugins'
import { PostgresDialect } from 'kysely'
import { addressHeader } from '../http/network.ts'
import type { Pool } from '../sql.ts'

/** How long an unused sign-in lasts, and how precise its time of last use is. */
const signInSeconds = 7 * 86_400
const lastUseSeconds = 3_600

/** Maps better-auth's tables to ours, in the schema `auth`. */
const tables = {
  user: {
    modelName: 'members',
    fields: {
      emailVerified: 'email_verified',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
    additionalFields: {
      role: { type: 'string', required: true, input: false },
      mayDeletePersons: {
        type: 'boolean',
        required: true,
        input: false,
        fieldName: 'may_delete_persons',
      },
      lastSignInAt: {
        type: 'date',
        required: false,
        input: false,
        fieldName: 'last_sign_in_at',
      },
    },
  },
  session: {
    modelName: 'sign_ins',
    expiresIn: signInSeconds,
    updateAge: lastUseSeconds,
    fields: {
      expiresAt: 'expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
      ipAddress: 'address',
      userAgent: 'user_agent',
      userId: 'member_id',
    },
  },
  account: {
    modelName: 'credentials',
    fields: {
      accountId: 'account_id',
      providerId: 'provider_id',
      userId: 'member_id',
      accessToken: 'access_token',
      refreshToken: 'refresh_token',
      idToken: 'id_token',
      accessTokenExpiresAt: 'access_token_expires_at',
      refreshTokenExpiresAt: 'refresh_token_expires_at',
      createdAt: 'created_at',
      updatedAt: 'updated_at',
    },
  },
  verification: {
    modelName: 'verifications',
    fields: { expiresAt: 'expires_at', createdAt: 'created_at', updatedAt: 'updated_at' },
  },
} as const

const secondFactor = twoFactor({
  issuer: 'Lethe',
  // We have our own limits, per browser; with this one anybody could lock a member out.
  accountLockout: { enabled: false },
  schema: {
    user: { fields: { twoFactorEnabled: 'has_second_factor' } },
    twoFactor: {
      modelName: 'second_factors',
      fields: {
        backupCodes: 'recovery_codes',
        userId: 'member_id',
        failedVerificationCount: 'failures',
        lockedUntil: 'locked_until',
      },
    },
  },
})

/** Completes a sign-in after a second factor that we checked ourselves (a passkey). */
const secondFactorElsewhere = {
  id: 'second-factor-elsewhere',
  endpoints: {
    completeSignIn: createAuthEndpoint('/sign-in/complete', { method: 'POST' }, async (ctx) => {
      const { internalAdapter, secret, createAuthCookie } = ctx.context
      const cookie = createAuthCookie('two_factor')
      const identifier = await ctx.getSignedCookie(cookie.name, secret)
      const waiting = identifier && (await internalAdapter.consumeVerificationValue(identifier))
      const user = waiting && (await internalAdapter.findUserById(waiting.value))
      if (!user) throw new APIError('UNAUTHORIZED')
      const session = await internalAdapter.createSession(user.id)
      await setSessionCookie(ctx, { session, user })
      expireCookie(ctx, cookie)
      return ctx.json({ token: session.token })
    }),
  },
} as const

/**
 * All options of better-auth, so that it reads none from the environment. Its own endpoints are not
 * reachable: ours call its functions, check the origin and limit attempts.
 */
export function signInOptions(
  pool: Pool,
  secret: string,
  cookies = { prefix: 'lethe', path: '/' },
) {
  return {
    ...tables,
    database: {
      dialect: new PostgresDialect({ pool }),
      type: 'postgres',
      schemaName: 'auth',
      transaction: true,
    },
    appName: 'Lethe',
    secret,
    baseURL: 'http://127.0.0.1',
    basePath: '/sign-in',
    telemetry: { enabled: false },
    logger: { disabled: true },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: 12,
      maxPasswordLength: 128,
    },
    rateLimit: { enabled: false },
    advanced: {
      cookiePrefix: cookies.prefix,
      // Our routes add Secure.
      useSecureCookies: false,
      defaultCookieAttributes: { sameSite: 'strict', httpOnly: true, path: cookies.path },
      disableOriginCheck: true,
      disableCSRFCheck: true,
      ipAddress: { ipAddressHeaders: [addressHeader] as string[] },
      database: { generateId: 'uuid' },
    },
    plugins: [secondFactor, secondFactorElsewhere],
  } as const
}

export type BetterAuth = ReturnType<typeof betterAuthOver>

export function betterAuthOver(
  pool: Pool,
  secret: string,
  cookies: { prefix: string; path: string },
) {
  return betterAuth({
    ...signInOptions(pool, secret, cookies),
    plugins: [secondFactor, secondFactorElsewhere],
  })
}
