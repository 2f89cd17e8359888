import { isIP } from 'node:net'
import type { Member, Passkey, PasskeyAnswer } from '@lethe/contract/dashboard-members.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import type { DashboardContext } from './context.ts'
import { publicUrlOf } from './origin.ts'
import {
  findPasskey,
  insertPasskey,
  keepChallenge,
  listPasskeys,
  notePasskeyUse,
  takeChallenge,
} from './passkey-store.ts'

const passkeysMaximum = 20

/** Loaded with the first passkey: few members have one. */
const webAuthn = () => import('@simplewebauthn/server')

/** The relying party: the host and its origins. Browsers support no passkeys for IP addresses. */
function partyOf(request: FastifyRequest, publicUrl: string): { id: string; origins: string[] } {
  const { hostname, host, origin } = new URL(publicUrlOf(request, publicUrl))
  if (isIP(hostname.replace(/^\[|\]$/g, '')) > 0) {
    throw new ApiError(
      'invalid_request',
      'Browsers support passkeys only for host names: open the dashboard at its host name.',
    )
  }
  // Behind a proxy that ends TLS the scheme is not known here, and need not be.
  return {
    id: hostname,
    origins: publicUrl === '' ? [`https://${host}`, `http://${host}`] : [origin],
  }
}

/** The options with which a browser creates a passkey for the member. */
export async function creationOptions(
  { db, publicUrl }: DashboardContext,
  request: FastifyRequest,
  member: Member,
) {
  const { id } = partyOf(request, publicUrl)
  const known = await listPasskeys(db.sql, member.id)
  if (known.length >= passkeysMaximum) {
    throw new ApiError('invalid_request', `A member can have at most ${passkeysMaximum} passkeys.`)
  }
  const options = await (await webAuthn()).generateRegistrationOptions({
    rpName: 'Lethe',
    rpID: id,
    userName: member.email,
    userDisplayName: member.name,
    attestationType: 'none',
    excludeCredentials: known.map((one) => ({ id: one.id })),
    // Used after the password, so it is found by its id.
    authenticatorSelection: { residentKey: 'discouraged', userVerification: 'preferred' },
  })
  const { challenge } = options
  await keepChallenge(db.sql, { challenge, memberId: member.id, purpose: 'add' })
  return options
}

/** Stores a passkey that a browser has created; refuses one that does not match its challenge. */
export async function addPasskey(
  { db, publicUrl }: DashboardContext,
  request: FastifyRequest,
  memberId: string,
  name: string,
  response: { id: string } & object,
): Promise<Passkey> {
  const { id, origins } = partyOf(request, publicUrl)
  const { verifyRegistrationResponse } = await webAuthn()
  const verified = await verifyRegistrationResponse({
    response: response as Parameters<typeof verifyRegistrationResponse>[0]['response'],
    expectedChallenge: (challenge) =>
      takeChallenge(db.sql, { challenge, memberId, purpose: 'add' }),
    expectedOrigin: origins,
    expectedRPID: id,
    requireUserVerification: false,
  }).catch(() => undefined)
  if (!verified?.verified)
    throw new ApiError('invalid_request', 'The passkey could not be verified.')
  const { credential } = verified.registrationInfo
  const key = { ...credential, publicKey: Buffer.from(credential.publicKey) }
  const added = await insertPasskey(db.sql, memberId, name, key)
  if (!added) throw new ApiError('invalid_request', 'This passkey is already in use.')
  return added
}

/** The options with which a browser asks for a passkey of the member; null if there is none. */
export async function requestOptions(
  { db, publicUrl }: DashboardContext,
  request: FastifyRequest,
  memberId: string,
) {
  const known = await listPasskeys(db.sql, memberId)
  if (known.length === 0) return null
  const options = await (await webAuthn()).generateAuthenticationOptions({
    rpID: partyOf(request, publicUrl).id,
    allowCredentials: known.map((one) => ({ id: one.id })),
    userVerification: 'preferred',
  })
  const { challenge } = options
  await keepChallenge(db.sql, { challenge, memberId, purpose: 'use' })
  return options
}

/** Whether a passkey of the member signed a recent challenge. */
export async function isProvenByPasskey(
  { db, publicUrl }: DashboardContext,
  request: FastifyRequest,
  memberId: string,
  response: PasskeyAnswer,
): Promise<boolean> {
  const key = await findPasskey(db.sql, memberId, response.id)
  if (!key) return false
  const { id, origins } = partyOf(request, publicUrl)
  const verified = await (await webAuthn())
    .verifyAuthenticationResponse({
      response,
      credential: { ...key, publicKey: new Uint8Array(key.publicKey) },
      expectedChallenge: (challenge) =>
        takeChallenge(db.sql, { challenge, memberId, purpose: 'use' }),
      expectedOrigin: origins,
      expectedRPID: id,
      requireUserVerification: false,
    })
    .catch(() => undefined)
  if (!verified?.verified) return false
  await notePasskeyUse(db.sql, key.id, verified.authenticationInfo.newCounter)
  return true
}
