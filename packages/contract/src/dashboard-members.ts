import { type Static, Type } from 'typebox'
import { ofDashboard } from './endpoint.ts'
import { errors, memberErrors } from './errors.ts'
import {
  choice,
  Done,
  Exactly,
  Instant,
  InstantOrNull,
  NoBody,
  OrNull,
  TextOrNull,
} from './schemas.ts'

/*
 * The dashboard's own API, of which this is the part about members: who is signed in, the first
 * owner, links, roles. Its requests need the sign-in cookie and must come from pages of this origin.
 * It is not versioned and not in openapi.json.
 */

export const Role = choice('owner', 'admin', 'member', 'viewer')
export type Role = Static<typeof Role>

/** What a member may do. The server enforces it on each request; pages only hide controls. */
export const permissions = [
  'projects.read',
  'projects.write',
  'persons.read',
  'persons.write',
  'persons.delete',
  'sessions.read',
  'sessions.annotate',
  'sessions.share',
  'deletions.read',
  'keys.read',
  'keys.write',
  'webhooks.read',
  'webhooks.write',
  'members.read',
  'members.write',
  'audit.read',
  'system.read',
] as const
export type Permission = (typeof permissions)[number]

export const Member = Type.Object({
  id: Type.String({ format: 'uuid' }),
  name: Type.String(),
  email: Type.String(),
  role: Role,
  mayDeletePersons: Type.Boolean({
    description: 'A permission of its own, whatever the role; owners always have it.',
  }),
  hasSecondFactor: Type.Boolean(),
  createdAt: Instant,
  lastSignInAt: InstantOrNull,
})
export type Member = Static<typeof Member>

const MemberName = Type.String({ minLength: 1, maxLength: 200 })
/** Email addresses that better-auth accepts: ASCII, with a dot in the domain. */
const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: "^([\\w'+-]+\\.)*[\\w'+-]*[\\w+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$",
})
const Password = Type.String({ minLength: 12, maxLength: 128 })
const LinkToken = Type.String({ minLength: 1, maxLength: 200 })
/** A password or code to check. Any text is valid; a wrong one gets credentials_wrong. */
const Given = Type.String({ minLength: 1, maxLength: 200 })
/** A WebAuthn response; an invalid one fails verification. */
const Opaque = <T>() => Type.Unsafe<T>(Type.Unknown())
const FromAuthenticator = Type.String({ minLength: 1, maxLength: 20_000 })
/** What a browser returns for the options of startPasskeyUse (PublicKeyCredential.toJSON). */
export const PasskeyAnswer = Type.Object({
  id: FromAuthenticator,
  rawId: FromAuthenticator,
  type: Type.Literal('public-key'),
  response: Opaque<{ clientDataJSON: string; authenticatorData: string; signature: string }>(),
  clientExtensionResults: Opaque<object>(),
})
export type PasskeyAnswer = Static<typeof PasskeyAnswer>
/** The second factor: an authenticator code, a recovery code, or a passkey's response. */
const Factor = { code: Type.Optional(Given), passkey: Type.Optional(PasskeyAnswer) }
/** Proves who a member is; `code` or `passkey` if there is a second factor. */
const Proof = Exactly({ password: Given, ...Factor })

/**
 * Who is signed in, and what a page needs to know before anything else. Open to everybody:
 * `member` is null if nobody is signed in.
 */
export const getMe = ofDashboard('getMe', 'GET', '/me', {
  response: {
    200: Type.Object({
      member: OrNull(Member),
      permissions: Type.Array(choice(...permissions)),
      /** True while there is no owner; the start prints a link for the first one. */
      isSetUpNeeded: Type.Boolean(),
      /** The public address of the service, for snippets; without a slash at the end. */
      publicUrl: Type.String(),
      /** The page of the replay frame, on this origin or on another one. */
      replayUrl: Type.String(),
      /** Empty if nobody is signed in. */
      version: Type.String(),
    }),
    ...errors('internal_error', 'unavailable'),
  },
})

/** The pages that links lead to; the token follows as the fragment, which no server or log sees. */
export const linkPaths = {
  set_up: '/setup',
  invitation: '/join',
  reset: '/reset',
  recording: '/shared',
} as const

/** Whether a set-up, invitation or reset link still works, and what it is for. */
export const checkLink = ofDashboard('checkLink', 'POST', '/links/check', {
  body: Exactly({ token: LinkToken }),
  response: {
    200: Type.Object({
      kind: choice('set_up', 'invitation', 'reset'),
      /** Of the invited member, or of the one whose password is reset; null for set_up. */
      email: TextOrNull,
      role: OrNull(Role),
      /** For set_up: the name of the existing project; null if there is none. */
      projectName: TextOrNull,
      expiresAt: Instant,
    }),
    ...errors('invalid_request', 'link_invalid', 'rate_limited'),
  },
})

/**
 * Creates the first owner and signs in. Creates a first project too, with keys that are shown only
 * once. An existing project (from the first start, or the command line) gets the name and keeps its
 * keys; both key texts are then null.
 */
export const setUp = ofDashboard('setUp', 'POST', '/set-up', {
  body: Exactly({
    token: LinkToken,
    name: MemberName,
    email: Email,
    password: Password,
    projectName: Type.String({ minLength: 1, maxLength: 200 }),
  }),
  response: {
    201: Type.Object({
      member: Member,
      project: Type.Object({ id: Type.String(), name: Type.String() }),
      secretKey: TextOrNull,
      publicKey: TextOrNull,
    }),
    ...errors('invalid_request', 'forbidden', 'link_invalid', 'rate_limited'),
  },
})

/** Creates the invited member and signs in. */
export const acceptInvitation = ofDashboard('acceptInvitation', 'POST', '/invitations/accept', {
  body: Exactly({ token: LinkToken, name: MemberName, password: Password }),
  response: {
    201: Type.Object({ member: Member }),
    ...errors('invalid_request', 'forbidden', 'link_invalid', 'member_exists', 'rate_limited'),
  },
})

/** Resets a password by a reset link: the second factor is removed and every sign-in ends. */
export const resetPassword = ofDashboard('resetPassword', 'POST', '/password-reset', {
  body: Exactly({ token: LinkToken, password: Password }),
  response: {
    200: Done,
    ...errors('invalid_request', 'forbidden', 'link_invalid', 'rate_limited'),
  },
})

/** `next` is `code` if the member has a second factor: signInWithCode follows. */
export const signIn = ofDashboard('signIn', 'POST', '/sign-in', {
  body: Exactly({ email: Type.String({ minLength: 1, maxLength: 254 }), password: Given }),
  response: {
    200: Type.Object({ next: choice('done', 'code') }),
    ...errors('invalid_request', 'credentials_wrong', 'forbidden', 'rate_limited'),
  },
})

/** The second factor: six digits of the authenticator, one of the recovery codes, or a passkey. */
export const signInWithCode = ofDashboard('signInWithCode', 'POST', '/sign-in/code', {
  body: Exactly(Factor),
  response: {
    200: Done,
    ...errors('invalid_request', 'credentials_wrong', 'forbidden', 'rate_limited'),
  },
})

export const signOut = ofDashboard('signOut', 'POST', '/sign-out', {
  body: NoBody,
  response: { 200: Done, ...errors('forbidden') },
})

export const updateMe = ofDashboard('updateMe', 'PATCH', '/me', {
  body: Exactly({ name: MemberName }),
  response: { 200: Type.Object({ member: Member }), ...memberErrors('invalid_request') },
})

/**
 * Ends all other sign-ins of the member and the links they created. `code` is for the second factor, if
 * there is one, as in all calls that need a password.
 */
export const changePassword = ofDashboard('changePassword', 'POST', '/me/password', {
  body: Exactly({ currentPassword: Given, newPassword: Password, ...Factor }),
  response: { 200: Done, ...memberErrors('invalid_request', 'credentials_wrong', 'rate_limited') },
})

/**
 * Whether the member has confirmed their identity recently enough for sensitive calls, which are
 * otherwise refused with reauthentication_required.
 */
export const checkProof = ofDashboard('checkProof', 'GET', '/me/proof', {
  response: { 200: Type.Object({ isRecent: Type.Boolean() }), ...errors('unauthorized') },
})

/** Confirms the member's identity for ten minutes, for this sign-in. */
export const proveIdentity = ofDashboard('proveIdentity', 'POST', '/me/proof', {
  body: Proof,
  response: { 200: Done, ...memberErrors('invalid_request', 'credentials_wrong', 'rate_limited') },
})

/** Starts the setup of a second factor; confirmSecondFactor completes it with a code. */
export const startSecondFactor = ofDashboard(
  'startSecondFactor',
  'POST',
  '/me/second-factor/start',
  {
    body: Proof,
    response: {
      200: Type.Object({
        /** otpauth://totp/…, for a QR code or an authenticator on the same device. */
        uri: Type.String(),
        /** The same secret in base32, to be typed. */
        secret: Type.String(),
        recoveryCodes: Type.Array(Type.String()),
      }),
      ...memberErrors('invalid_request', 'credentials_wrong', 'rate_limited'),
    },
  },
)

export const confirmSecondFactor = ofDashboard(
  'confirmSecondFactor',
  'POST',
  '/me/second-factor/confirm',
  {
    body: Exactly({ code: Given }),
    response: {
      200: Done,
      ...memberErrors('invalid_request', 'credentials_wrong', 'rate_limited'),
    },
  },
)

export const removeSecondFactor = ofDashboard(
  'removeSecondFactor',
  'POST',
  '/me/second-factor/remove',
  {
    body: Proof,
    response: {
      200: Done,
      ...memberErrors('invalid_request', 'credentials_wrong', 'rate_limited'),
    },
  },
)

/** An additional second factor of a member who has one; it replaces a code. */
export const Passkey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Instant,
  lastUsedAt: InstantOrNull,
})
export type Passkey = Static<typeof Passkey>

/** For PublicKeyCredential.parseCreationOptionsFromJSON and parseRequestOptionsFromJSON. */
const WebAuthnOptions = Type.Record(Type.String(), Type.Unknown())

export const listPasskeys = ofDashboard('listPasskeys', 'GET', '/me/passkeys', {
  response: { 200: Type.Object({ passkeys: Type.Array(Passkey) }), ...errors('unauthorized') },
})

export const startPasskey = ofDashboard('startPasskey', 'POST', '/me/passkeys/start', {
  body: NoBody,
  response: { 200: Type.Object({ options: WebAuthnOptions }), ...memberErrors('invalid_request') },
})

/** Adds the passkey that a browser has created with the options of startPasskey. */
export const addPasskey = ofDashboard('addPasskey', 'POST', '/me/passkeys', {
  body: Exactly({
    name: Type.String({ minLength: 1, maxLength: 100 }),
    passkey: Type.Object({
      id: FromAuthenticator,
      rawId: FromAuthenticator,
      type: Type.Literal('public-key'),
      response: Opaque<{ clientDataJSON: string; attestationObject: string }>(),
      clientExtensionResults: Opaque<object>(),
    }),
  }),
  response: {
    200: Type.Object({ passkey: Passkey }),
    ...memberErrors('invalid_request', 'rate_limited'),
  },
})

export const removePasskey = ofDashboard('removePasskey', 'DELETE', '/me/passkeys/:passkeyId', {
  params: Type.Object({ passkeyId: Type.String({ maxLength: 2_000 }) }),
  response: { 200: Done, ...memberErrors('invalid_request') },
})

/**
 * The options for a browser to use a passkey, for the signed-in member or one whose sign-in waits for
 * the second factor; null if there is no such member or no passkey.
 */
export const startPasskeyUse = ofDashboard('startPasskeyUse', 'POST', '/passkey', {
  body: NoBody,
  response: {
    200: Type.Object({ options: OrNull(WebAuthnOptions) }),
    ...errors('invalid_request', 'forbidden', 'rate_limited'),
  },
})

/** Where the member is signed in. */
export const SignIn = Type.Object({
  id: Type.String(),
  createdAt: Instant,
  lastUsedAt: Instant,
  address: TextOrNull,
  userAgent: TextOrNull,
  isCurrent: Type.Boolean(),
})
export type SignIn = Static<typeof SignIn>

export const listSignIns = ofDashboard('listSignIns', 'GET', '/me/sign-ins', {
  response: { 200: Type.Object({ signIns: Type.Array(SignIn) }), ...errors('unauthorized') },
})

/** Ends every sign-in of the member but this one. */
export const endOtherSignIns = ofDashboard('endOtherSignIns', 'POST', '/me/sign-ins/end-others', {
  body: NoBody,
  response: { 200: Done, ...memberErrors() },
})

export const Invitation = Type.Object({
  id: Type.String({ format: 'uuid' }),
  email: Type.String(),
  role: Role,
  mayDeletePersons: Type.Boolean(),
  createdAt: Instant,
  expiresAt: Instant,
})
export type Invitation = Static<typeof Invitation>

const MemberPath = Type.Object({ memberId: Type.String() })
const LinkReply = Type.Object({
  /** The whole link with its token; shown only once. */
  link: Type.String(),
  expiresAt: Instant,
})

export const listMembers = ofDashboard('listMembers', 'GET', '/members', {
  response: {
    200: Type.Object({ members: Type.Array(Member), invitations: Type.Array(Invitation) }),
    ...memberErrors(),
  },
})

/** Only owners can invite owners. A new invitation of the same email replaces the earlier one. */
export const inviteMember = ofDashboard('inviteMember', 'POST', '/invitations', {
  body: Exactly({ email: Email, role: Role, mayDeletePersons: Type.Boolean() }),
  response: {
    201: Type.Object({ invitation: Invitation, link: Type.String() }),
    ...memberErrors('invalid_request', 'member_exists'),
  },
})

export const withdrawInvitation = ofDashboard(
  'withdrawInvitation',
  'DELETE',
  '/invitations/:invitationId',
  {
    params: Type.Object({ invitationId: Type.String() }),
    response: { 200: Done, ...memberErrors('link_invalid') },
  },
)

/** Only owners can change or create owners; the last owner cannot be removed (last_owner). */
export const updateMember = ofDashboard('updateMember', 'PATCH', '/members/:memberId', {
  params: MemberPath,
  body: Exactly({ role: Type.Optional(Role), mayDeletePersons: Type.Optional(Type.Boolean()) }),
  response: {
    200: Type.Object({ member: Member }),
    ...memberErrors('invalid_request', 'member_not_found', 'last_owner'),
  },
})

/** The member is signed out everywhere at once. */
export const removeMember = ofDashboard('removeMember', 'DELETE', '/members/:memberId', {
  params: MemberPath,
  response: { 200: Done, ...memberErrors('member_not_found', 'last_owner') },
})

/** A link for a member who forgot the password or lost the second factor. */
export const makeResetLink = ofDashboard('makeResetLink', 'POST', '/members/:memberId/reset-link', {
  params: MemberPath,
  body: NoBody,
  response: { 201: LinkReply, ...memberErrors('member_not_found') },
})
