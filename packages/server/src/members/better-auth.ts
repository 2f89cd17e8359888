import { betterAuth } from 'better-auth'
import { twoFactor } from 'better-auth/plugins'
import { PostgresDialect } from 'kysely'
import type { Pool } from '../sql.ts'
import { addressHeader } from './address-header.ts'

/** How long a sign-in lasts that is not used, and how exactly its last use is known. */
const signInSeconds = 7 * 86_400
const lastUseSeconds = 3_600

/** How better-auth finds its tables: in the schema auth of the migrations, under our names. */
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

/**
 * Everything better-auth is told, so that nothing of it comes from the environment. Its own
 * endpoints are not reachable: ours call its functions, check the origin, count the tries and know
 * the address of the service.
 */
export function signInOptions(pool: Pool, secret: string) {
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
      cookiePrefix: 'lethe',
      // Our routes add Secure where the request came by https: that is known then, not here.
      useSecureCookies: false,
      defaultCookieAttributes: { sameSite: 'strict', httpOnly: true, path: '/' },
      disableOriginCheck: true,
      disableCSRFCheck: true,
      ipAddress: { ipAddressHeaders: [addressHeader] as string[] },
      database: { generateId: 'uuid' },
    },
    plugins: [secondFactor],
  } as const
}

export type BetterAuth = ReturnType<typeof betterAuthOver>

export function betterAuthOver(pool: Pool, secret: string) {
  return betterAuth({ ...signInOptions(pool, secret), plugins: [secondFactor] })
}
