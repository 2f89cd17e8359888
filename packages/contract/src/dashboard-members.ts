import { type Static, Type } from 'typebox'
import { errors } from './errors.ts'
import { Instant, InstantOrNull } from './page.ts'

/*
 * The dashboard's own API, of which this is the part about members: who is signed in, the first
 * owner, links, roles. Its requests carry the sign-in cookie and no key, and are answered to pages
 * of this origin alone. It is not versioned for customers and no part of openapi.json.
 */

export const Role = Type.Unsafe<'owner' | 'admin' | 'member' | 'viewer'>(
  Type.String({ enum: ['owner', 'admin', 'member', 'viewer'] }),
)
export type Role = Static<typeof Role>

/** What a member may do. The server holds each of them on each request; a page only hides by them. */
export const permissions = [
  'projects.read',
  'projects.write',
  'persons.read',
  'persons.write',
  'persons.delete',
  'sessions.read',
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
/** Plain ASCII addresses under a domain with a dot: what better-auth takes at the sign-in. */
const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: "^([\\w'+-]+\\.)*[\\w'+-]*[\\w+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$",
})
const Password = Type.String({ minLength: 12, maxLength: 128 })
const LinkToken = Type.String({ minLength: 1, maxLength: 200 })
/** A password or code to be checked, of whatever form: a wrong one is credentials_wrong. */
const Given = Type.String({ minLength: 1, maxLength: 200 })
const NoBody = Type.Object({}, { additionalProperties: false })
const Done = Type.Object({})

/**
 * Who is signed in, and what a page needs to know before anything else. Answered to everybody:
 * `member` is null for who is not signed in.
 */
export const getMe = {
  method: 'GET',
  url: '/dashboard/v1/me',
  schema: {
    operationId: 'getMe',
    response: {
      200: Type.Object({
        member: Type.Union([Member, Type.Null()]),
        permissions: Type.Array(
          Type.Unsafe<Permission>(Type.String({ enum: permissions as unknown as string[] })),
        ),
        /** True while there is no owner: the first one comes by the link printed at the start. */
        isSetUpNeeded: Type.Boolean(),
        /** Where this service is reached from outside, for snippets; no slash at the end. */
        publicUrl: Type.String(),
        /** The page of the sealed replay frame, an address of this origin or of one of its own. */
        replayUrl: Type.String(),
        /** Empty for who is not signed in. */
        version: Type.String(),
      }),
      ...errors('internal_error', 'unavailable'),
    },
  },
} as const

/** The pages that links lead to; the token follows as the fragment, which no server or log sees. */
export const linkPaths = { set_up: '/setup', invitation: '/join', reset: '/reset' } as const

/** Whether a set-up, invitation or reset link still works, and what it is for. */
export const checkLink = {
  method: 'POST',
  url: '/dashboard/v1/links/check',
  schema: {
    operationId: 'checkLink',
    body: Type.Object({ token: LinkToken }, { additionalProperties: false }),
    response: {
      200: Type.Object({
        kind: Type.Unsafe<'set_up' | 'invitation' | 'reset'>(
          Type.String({ enum: ['set_up', 'invitation', 'reset'] }),
        ),
        /** Of the invited member, or of whose password is set anew; null for set_up. */
        email: Type.Union([Type.String(), Type.Null()]),
        role: Type.Union([Role, Type.Null()]),
        /** For set_up: the name of the project that is there already; null where none is. */
        projectName: Type.Union([Type.String(), Type.Null()]),
        expiresAt: Instant,
      }),
      ...errors('invalid_request', 'link_invalid', 'rate_limited'),
    },
  },
} as const

/**
 * Makes the first owner and signs in. A first project is made, with keys that are shown this once;
 * one that is there already (from the first start, or the command line) gets the name, keeps its
 * keys, and both key texts are null.
 */
export const setUp = {
  method: 'POST',
  url: '/dashboard/v1/set-up',
  schema: {
    operationId: 'setUp',
    body: Type.Object(
      {
        token: LinkToken,
        name: MemberName,
        email: Email,
        password: Password,
        projectName: Type.String({ minLength: 1, maxLength: 200 }),
      },
      { additionalProperties: false },
    ),
    response: {
      201: Type.Object({
        member: Member,
        project: Type.Object({ id: Type.String(), name: Type.String() }),
        secretKey: Type.Union([Type.String(), Type.Null()]),
        publicKey: Type.Union([Type.String(), Type.Null()]),
      }),
      ...errors('invalid_request', 'forbidden', 'link_invalid', 'rate_limited'),
    },
  },
} as const

/** Makes the invited member and signs in. */
export const acceptInvitation = {
  method: 'POST',
  url: '/dashboard/v1/invitations/accept',
  schema: {
    operationId: 'acceptInvitation',
    body: Type.Object(
      { token: LinkToken, name: MemberName, password: Password },
      { additionalProperties: false },
    ),
    response: {
      201: Type.Object({ member: Member }),
      ...errors('invalid_request', 'forbidden', 'link_invalid', 'member_exists', 'rate_limited'),
    },
  },
} as const

/** Sets a password anew by a reset link: the second factor is taken off and every sign-in ends. */
export const resetPassword = {
  method: 'POST',
  url: '/dashboard/v1/password-reset',
  schema: {
    operationId: 'resetPassword',
    body: Type.Object({ token: LinkToken, password: Password }, { additionalProperties: false }),
    response: {
      200: Done,
      ...errors('invalid_request', 'forbidden', 'link_invalid', 'rate_limited'),
    },
  },
} as const

/** `next` is code where the member has a second factor: signInWithCode follows. */
export const signIn = {
  method: 'POST',
  url: '/dashboard/v1/sign-in',
  schema: {
    operationId: 'signIn',
    body: Type.Object(
      { email: Type.String({ minLength: 1, maxLength: 254 }), password: Given },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({
        next: Type.Unsafe<'done' | 'code'>(Type.String({ enum: ['done', 'code'] })),
      }),
      ...errors('invalid_request', 'credentials_wrong', 'forbidden', 'rate_limited'),
    },
  },
} as const

/** The second factor: six digits of the authenticator, or one of the recovery codes. */
export const signInWithCode = {
  method: 'POST',
  url: '/dashboard/v1/sign-in/code',
  schema: {
    operationId: 'signInWithCode',
    body: Type.Object({ code: Given }, { additionalProperties: false }),
    response: {
      200: Done,
      ...errors('invalid_request', 'credentials_wrong', 'forbidden', 'rate_limited'),
    },
  },
} as const

export const signOut = {
  method: 'POST',
  url: '/dashboard/v1/sign-out',
  schema: { operationId: 'signOut', body: NoBody, response: { 200: Done, ...errors('forbidden') } },
} as const

export const updateMe = {
  method: 'PATCH',
  url: '/dashboard/v1/me',
  schema: {
    operationId: 'updateMe',
    body: Type.Object({ name: MemberName }, { additionalProperties: false }),
    response: {
      200: Type.Object({ member: Member }),
      ...errors('invalid_request', 'unauthorized', 'forbidden'),
    },
  },
} as const

/** Every other sign-in of the member ends. */
export const changePassword = {
  method: 'POST',
  url: '/dashboard/v1/me/password',
  schema: {
    operationId: 'changePassword',
    body: Type.Object(
      { currentPassword: Given, newPassword: Password },
      { additionalProperties: false },
    ),
    response: {
      200: Done,
      ...errors(
        'invalid_request',
        'unauthorized',
        'credentials_wrong',
        'forbidden',
        'rate_limited',
      ),
    },
  },
} as const

/** Begins a second factor; it counts once confirmSecondFactor has seen a code of it. */
export const startSecondFactor = {
  method: 'POST',
  url: '/dashboard/v1/me/second-factor/start',
  schema: {
    operationId: 'startSecondFactor',
    body: Type.Object({ password: Given }, { additionalProperties: false }),
    response: {
      200: Type.Object({
        /** otpauth://totp/…, for a QR code or an authenticator on the same device. */
        uri: Type.String(),
        /** The same secret in base32, to be typed. */
        secret: Type.String(),
        recoveryCodes: Type.Array(Type.String()),
      }),
      ...errors(
        'invalid_request',
        'unauthorized',
        'credentials_wrong',
        'forbidden',
        'rate_limited',
      ),
    },
  },
} as const

export const confirmSecondFactor = {
  method: 'POST',
  url: '/dashboard/v1/me/second-factor/confirm',
  schema: {
    operationId: 'confirmSecondFactor',
    body: Type.Object({ code: Given }, { additionalProperties: false }),
    response: {
      200: Done,
      ...errors(
        'invalid_request',
        'unauthorized',
        'credentials_wrong',
        'forbidden',
        'rate_limited',
      ),
    },
  },
} as const

export const removeSecondFactor = {
  method: 'POST',
  url: '/dashboard/v1/me/second-factor/remove',
  schema: {
    operationId: 'removeSecondFactor',
    body: Type.Object({ password: Given }, { additionalProperties: false }),
    response: {
      200: Done,
      ...errors(
        'invalid_request',
        'unauthorized',
        'credentials_wrong',
        'forbidden',
        'rate_limited',
      ),
    },
  },
} as const

/** Where the member is signed in. */
export const SignIn = Type.Object({
  id: Type.String(),
  createdAt: Instant,
  lastUsedAt: Instant,
  address: Type.Union([Type.String(), Type.Null()]),
  userAgent: Type.Union([Type.String(), Type.Null()]),
  isCurrent: Type.Boolean(),
})
export type SignIn = Static<typeof SignIn>

export const listSignIns = {
  method: 'GET',
  url: '/dashboard/v1/me/sign-ins',
  schema: {
    operationId: 'listSignIns',
    response: { 200: Type.Object({ signIns: Type.Array(SignIn) }), ...errors('unauthorized') },
  },
} as const

/** Ends every sign-in of the member but this one. */
export const endOtherSignIns = {
  method: 'POST',
  url: '/dashboard/v1/me/sign-ins/end-others',
  schema: {
    operationId: 'endOtherSignIns',
    body: NoBody,
    response: { 200: Done, ...errors('unauthorized', 'forbidden') },
  },
} as const

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
  /** The whole link with its token; shown this once. */
  link: Type.String(),
  expiresAt: Instant,
})

export const listMembers = {
  method: 'GET',
  url: '/dashboard/v1/members',
  schema: {
    operationId: 'listMembers',
    response: {
      200: Type.Object({ members: Type.Array(Member), invitations: Type.Array(Invitation) }),
      ...errors('unauthorized', 'forbidden'),
    },
  },
} as const

/** Only an owner invites an owner. A second invitation of the same e-mail replaces the first. */
export const inviteMember = {
  method: 'POST',
  url: '/dashboard/v1/invitations',
  schema: {
    operationId: 'inviteMember',
    body: Type.Object(
      { email: Email, role: Role, mayDeletePersons: Type.Boolean() },
      { additionalProperties: false },
    ),
    response: {
      201: Type.Object({ invitation: Invitation, link: Type.String() }),
      ...errors('invalid_request', 'unauthorized', 'forbidden', 'member_exists'),
    },
  },
} as const

export const withdrawInvitation = {
  method: 'DELETE',
  url: '/dashboard/v1/invitations/:invitationId',
  schema: {
    operationId: 'withdrawInvitation',
    params: Type.Object({ invitationId: Type.String() }),
    response: { 200: Done, ...errors('unauthorized', 'forbidden', 'link_invalid') },
  },
} as const

/** Only an owner changes an owner, or makes one; the last owner stays one (last_owner). */
export const updateMember = {
  method: 'PATCH',
  url: '/dashboard/v1/members/:memberId',
  schema: {
    operationId: 'updateMember',
    params: MemberPath,
    body: Type.Object(
      { role: Type.Optional(Role), mayDeletePersons: Type.Optional(Type.Boolean()) },
      { additionalProperties: false },
    ),
    response: {
      200: Type.Object({ member: Member }),
      ...errors('invalid_request', 'unauthorized', 'forbidden', 'member_not_found', 'last_owner'),
    },
  },
} as const

/** The member is signed out everywhere at once. */
export const removeMember = {
  method: 'DELETE',
  url: '/dashboard/v1/members/:memberId',
  schema: {
    operationId: 'removeMember',
    params: MemberPath,
    response: {
      200: Done,
      ...errors('unauthorized', 'forbidden', 'member_not_found', 'last_owner'),
    },
  },
} as const

/** A link by which a member who forgot the password, or lost the second factor, comes back in. */
export const makeResetLink = {
  method: 'POST',
  url: '/dashboard/v1/members/:memberId/reset-link',
  schema: {
    operationId: 'makeResetLink',
    params: MemberPath,
    body: NoBody,
    response: { 201: LinkReply, ...errors('unauthorized', 'forbidden', 'member_not_found') },
  },
} as const
