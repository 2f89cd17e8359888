import { type Static, Type } from 'typebox'
import { ofDashboard, ofProject } from './endpoint.ts'
import { memberErrors, projectErrors } from './errors.ts'
import { Masking } from './ingest.ts'
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

/** Which proofs of a userId identify() accepts: all, tokens (they expire) or EdDSA tokens only. */
export const IdentityProofs = choice('any', 'tokens', 'eddsa')
export type IdentityProofs = Static<typeof IdentityProofs>

export const DashboardProject = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Instant,
  retentionDays: Type.Integer(),
  /** Days after their last recording until people whom only identify() created are deleted; 0: never. */
  identifiedDays: Type.Integer(),
  masking: Masking,
  sampleRate: Type.Number(),
  /** Whether images and fonts become part of recordings if a page asks for it. */
  recordsAssets: Type.Boolean(),
  /** Whether identify() brings no erased person back until the backend does. */
  suppressesErased: Type.Boolean(),
  /** Whether `optOut({ erase: true })` of a page erases what its browser recorded. */
  allowsWithdrawal: Type.Boolean(),
  hasIdentifySecret: Type.Boolean(),
  identityProofs: IdentityProofs,
  /** Whether identify() has to carry a proof made by the customer's backend. */
  needsProof: Type.Boolean(),
})
export type DashboardProject = Static<typeof DashboardProject>

const ProjectReply = Type.Object({ project: DashboardProject })
const ProjectName = Type.String({ minLength: 1, maxLength: 200 })

export const listProjects = ofDashboard('listProjects', 'GET', '/projects', {
  response: { 200: Type.Object({ projects: Type.Array(DashboardProject) }), ...memberErrors() },
})

/** Creates a project with its first two keys, whose texts are shown only once. */
export const createProject = ofDashboard('createProject', 'POST', '/projects', {
  body: Exactly({ name: ProjectName }),
  response: {
    201: Type.Object({
      project: DashboardProject,
      secretKey: Type.String(),
      publicKey: Type.String(),
    }),
    ...memberErrors('invalid_request'),
  },
})

export const getProject = ofProject('getProject', 'GET', '', {
  response: { 200: ProjectReply, ...projectErrors() },
})

export const updateProject = ofProject('updateProject', 'PATCH', '', {
  body: Exactly({
    name: Type.Optional(ProjectName),
    retentionDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 3650 })),
    identifiedDays: Type.Optional(Type.Integer({ minimum: 0, maximum: 3650 })),
    masking: Type.Optional(Masking),
    sampleRate: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    recordsAssets: Type.Optional(Type.Boolean()),
    suppressesErased: Type.Optional(Type.Boolean()),
    identityProofs: Type.Optional(IdentityProofs),
    allowsWithdrawal: Type.Optional(Type.Boolean()),
  }),
  response: { 200: ProjectReply, ...projectErrors('invalid_request') },
})

/** Creates an identify secret, shown only once; the previous one works until it is ended. */
export const makeIdentifySecret = ofProject('makeIdentifySecret', 'POST', '/identify-secret', {
  body: NoBody,
  response: { 201: Type.Object({ identifySecret: Type.String() }), ...projectErrors() },
})

export const removeIdentifySecret = ofProject(
  'removeIdentifySecret',
  'DELETE',
  '/identify-secret',
  {
    querystring: Exactly({ onlyOlder: Type.Optional(Type.Boolean()) }),
    response: { 200: Done, ...projectErrors() },
  },
)

/** A public key, Ed25519, that the tokens of identify() are checked with. */
export const IdentityKey = Type.Object({
  id: Type.String({ format: 'uuid' }),
  /** As in a JWK: its 32 bytes in base64url. */
  publicKey: Type.String(),
  createdAt: Instant,
})
export type IdentityKey = Static<typeof IdentityKey>

const IdentityKeys = Type.Object({ keys: Type.Array(IdentityKey) })

export const listIdentityKeys = ofProject('listIdentityKeys', 'GET', '/identity-keys', {
  response: { 200: IdentityKeys, ...projectErrors() },
})

/** Two work at once, so that they can be rotated. */
export const addIdentityKey = ofProject('addIdentityKey', 'POST', '/identity-keys', {
  body: Exactly({ publicKey: Type.String({ minLength: 1, maxLength: 2_000 }) }),
  response: { 201: IdentityKeys, ...projectErrors('invalid_request') },
})

export const removeIdentityKey = ofProject('removeIdentityKey', 'DELETE', '/identity-keys/:keyId', {
  params: Type.Object({
    projectId: Type.String(),
    keyId: Type.String({ format: 'uuid' }),
  }),
  response: { 200: IdentityKeys, ...projectErrors('invalid_request') },
})

/** What the banner and the navigation show on every screen of a project. */
export const getProjectSummary = ofProject('getProjectSummary', 'GET', '/summary', {
  response: {
    200: Type.Object({
      deletionsInProgress: Type.Integer(),
      /** Persons whose last deletion failed and who are still there. */
      deletionsFailed: Type.Integer(),
      hasPersons: Type.Boolean(),
      hasSessions: Type.Boolean(),
      /** Since midnight of UTC, of chunks as they were sent. */
      recordedBytesToday: Type.Number(),
      /** Requests of browsers that a limit refused since midnight of UTC. */
      recordingsRefusedToday: Type.Number(),
      /** Requests that the rate limit of a secret key refused since midnight of UTC. */
      requestsRefusedToday: Type.Number(),
      /** Erased people whom identify does not create again; counted up to 10,000. */
      suppressedPeople: Type.Integer(),
    }),
    ...projectErrors(),
  },
})

/** The progress of the setup: polled by "waiting for the first recording…". */
export const getInstallState = ofProject('getInstallState', 'GET', '/install', {
  response: {
    200: Type.Object({
      /** The newest working public key; its text is in every page anyway. */
      publicKey: Type.Union([
        Type.Object({
          id: Type.String(),
          name: Type.String(),
          text: Type.String(),
          lastUsedAt: InstantOrNull,
          allowedOrigins: Type.Union([Type.Array(Type.String()), Type.Null()]),
        }),
        Type.Null(),
      ]),
      sampleRate: Type.Number(),
      needsProof: Type.Boolean(),
      /** The newest session that has something to watch. */
      session: OrNull(Type.Object({ id: Type.String(), startedAt: Instant })),
      /** Whether any browser has connected, even without a stored recording. */
      hasBrowser: Type.Boolean(),
      /** Whether a backend has used a secret key. */
      secretKeyLastUsedAt: InstantOrNull,
    }),
    ...projectErrors(),
  },
})

export const DashboardKey = Type.Object({
  id: Type.String({ format: 'uuid' }),
  kind: choice('secret', 'public'),
  name: Type.String(),
  last4: Type.String(),
  /** The whole key, for public keys only; a secret key's text is not stored. */
  publicText: TextOrNull,
  /** Origins a public key may be used from; null: any. */
  allowedOrigins: Type.Union([Type.Array(Type.String()), Type.Null()]),
  createdAt: Instant,
  lastUsedAt: InstantOrNull,
  expiresAt: InstantOrNull,
  revokedAt: InstantOrNull,
  state: choice('working', 'ending', 'ended'),
})
export type DashboardKey = Static<typeof DashboardKey>

const KeyPath = Type.Object({ projectId: Type.String(), keyId: Type.String() })
const NewKeyReply = Type.Object({
  key: DashboardKey,
  /** The key itself, shown only once. */
  text: Type.String(),
})

export const listKeys = ofProject('listKeys', 'GET', '/keys', {
  response: { 200: Type.Object({ keys: Type.Array(DashboardKey) }), ...projectErrors() },
})

export const createKey = ofProject('createKey', 'POST', '/keys', {
  body: Exactly({
    kind: choice('secret', 'public'),
    name: Type.String({ minLength: 1, maxLength: 200 }),
  }),
  response: { 201: NewKeyReply, ...projectErrors('invalid_request') },
})

/** A new key of the same kind, name and origins; the old one ends after the overlap. */
export const rotateKey = ofProject('rotateKey', 'POST', '/keys/:keyId/rotate', {
  params: KeyPath,
  body: Exactly({
    overlapSeconds: Type.Integer({
      minimum: 0,
      maximum: 31_622_400,
      description: 'How long both keys work; 0 ends the old one at once.',
    }),
  }),
  response: { 201: NewKeyReply, ...projectErrors('invalid_request', 'key_not_found') },
})

/** Ends a key at once: it stops working within 5 seconds. */
export const revokeKey = ofProject('revokeKey', 'POST', '/keys/:keyId/revoke', {
  params: KeyPath,
  body: NoBody,
  response: { 200: Type.Object({ key: DashboardKey }), ...projectErrors('key_not_found') },
})

/** The origins a public key may be used from, as in https://app.example.com; null: any. */
export const updateKey = ofProject('updateKey', 'PATCH', '/keys/:keyId', {
  params: KeyPath,
  body: Exactly({
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    allowedOrigins: Type.Optional(
      Type.Union([
        Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
          minItems: 1,
          maxItems: 50,
        }),
        Type.Null(),
      ]),
    ),
  }),
  response: {
    200: Type.Object({ key: DashboardKey }),
    ...projectErrors('invalid_request', 'key_not_found'),
  },
})
