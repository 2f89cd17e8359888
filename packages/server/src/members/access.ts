import type * as deletions from '@lethe/contract/dashboard-deletions.ts'
import type * as home from '@lethe/contract/dashboard-home.ts'
import type * as members from '@lethe/contract/dashboard-members.ts'
import { type Permission, permissions, type Role } from '@lethe/contract/dashboard-members.ts'
import type * as moments from '@lethe/contract/dashboard-moments.ts'
import type * as persons from '@lethe/contract/dashboard-persons.ts'
import type * as projects from '@lethe/contract/dashboard-projects.ts'
import type * as sessions from '@lethe/contract/dashboard-sessions.ts'
import type * as system from '@lethe/contract/dashboard-system.ts'
import type * as webhooks from '@lethe/contract/dashboard-webhooks.ts'

type OperationOf<Module> = {
  [Name in keyof Module]: Module[Name] extends { schema: { operationId: infer Id extends string } }
    ? Id
    : never
}[keyof Module]

export type Operation =
  | OperationOf<typeof deletions>
  | OperationOf<typeof home>
  | OperationOf<typeof members>
  | OperationOf<typeof moments>
  | OperationOf<typeof persons>
  | OperationOf<typeof projects>
  | OperationOf<typeof sessions>
  | OperationOf<typeof system>
  | OperationOf<typeof webhooks>

/** Who may call an endpoint: anyone, any member who is signed in, or those with a permission. */
export type Access = 'anyone' | 'any member' | Permission

/**
 * `recent`: the member has confirmed their password, and second factor if there is one, within the last
 * minutes. `recent for several`: only to delete more than one person.
 */
export type Proof = 'recent' | 'recent for several'

export interface Rule {
  may: Access
  proof: Proof | 'none'
}

/**
 * Who may call each endpoint, and for what a stolen sign-in is not enough. An endpoint that is missing
 * here does not compile. Requests that change the password or second factor always contain a proof
 * themselves.
 */
export const access: Record<Operation, Access | Rule> = {
  getMe: 'anyone',
  checkLink: 'anyone',
  setUp: 'anyone',
  acceptInvitation: 'anyone',
  resetPassword: 'anyone',
  signIn: 'anyone',
  signInWithCode: 'anyone',
  startPasskeyUse: 'anyone',
  signOut: 'anyone',
  openShared: 'anyone',
  getSharedEvents: 'anyone',

  updateMe: 'any member',
  changePassword: 'any member',
  startSecondFactor: 'any member',
  confirmSecondFactor: proven('any member'),
  removeSecondFactor: 'any member',
  listPasskeys: 'any member',
  startPasskey: proven('any member'),
  addPasskey: proven('any member'),
  removePasskey: proven('any member'),
  listSignIns: 'any member',
  endOtherSignIns: 'any member',
  checkProof: 'any member',
  proveIdentity: 'any member',

  listMembers: 'members.read',
  inviteMember: proven('members.write'),
  withdrawInvitation: proven('members.write'),
  updateMember: proven('members.write'),
  removeMember: proven('members.write'),
  makeResetLink: proven('members.write'),

  listProjects: 'projects.read',
  getProject: 'projects.read',
  getProjectSummary: 'projects.read',
  getHome: 'projects.read',
  getInstallState: 'projects.read',
  createProject: proven('projects.write'),
  updateProject: proven('projects.write'),

  listKeys: 'keys.read',
  createKey: proven('keys.write'),
  rotateKey: proven('keys.write'),
  revokeKey: proven('keys.write'),
  updateKey: proven('keys.write'),
  makeIdentifySecret: proven('keys.write'),
  removeIdentifySecret: proven('keys.write'),
  listIdentityKeys: 'keys.read',
  addIdentityKey: proven('keys.write'),
  removeIdentityKey: proven('keys.write'),

  listPersonSummaries: 'persons.read',
  getPersonDetail: 'persons.read',
  listPersonBrowsers: 'persons.read',
  listPersonActivity: 'persons.read',
  updatePersonDetail: 'persons.write',
  previewDeletion: 'persons.delete',
  requestDeletions: proven('persons.delete', 'recent for several'),

  listDeletions: 'deletions.read',
  getDeletion: 'deletions.read',
  getReceipt: 'deletions.read',
  exportDeletions: proven('deletions.read'),

  listSessions: 'sessions.read',
  getSession: 'sessions.read',
  getSessionEvents: 'sessions.read',
  listMoments: 'sessions.read',
  addNote: 'sessions.annotate',
  removeNote: 'sessions.annotate',
  makeSessionLink: proven('sessions.share'),
  withdrawSessionLink: 'sessions.share',

  listWebhooks: 'webhooks.read',
  listDeliveries: 'webhooks.read',
  createWebhook: proven('webhooks.write'),
  updateWebhook: proven('webhooks.write'),
  removeWebhook: proven('webhooks.write'),
  rotateWebhookSecret: proven('webhooks.write'),
  testWebhook: 'webhooks.write',
  resendDelivery: 'webhooks.write',

  listAuditEntries: 'audit.read',
  exportAuditEntries: proven('audit.read'),
  getSystem: 'system.read',
}

export function ruleOf(operation: Operation): Rule {
  const rule = access[operation]
  return typeof rule === 'string' ? { may: rule, proof: 'none' } : rule
}

function proven(may: Access, proof: Proof = 'recent'): Rule {
  return { may, proof }
}

const viewer: Permission[] = ['projects.read', 'persons.read', 'sessions.read', 'deletions.read']
const member: Permission[] = [
  ...viewer,
  'persons.write',
  'sessions.annotate',
  'keys.read',
  'members.read',
]
/** Deleting persons does not depend on the role: it is a permission of each member. */
const all = permissions.filter((one) => one !== 'persons.delete')

/** What each role may do. Only owners may manage owners: see mayManage. */
const permissionsOfRole: Record<Role, readonly Permission[]> = {
  owner: all,
  admin: all,
  member,
  viewer,
}

export interface Rights {
  role: Role
  mayDeletePersons: boolean
}

export function permissionsOf({ role, mayDeletePersons }: Rights): Permission[] {
  const ofRole = permissionsOfRole[role]
  return permissions.filter(
    (one) => ofRole.includes(one) || (one === 'persons.delete' && mayDeletePersons),
  )
}

/**
 * Whether `acting`, who has members.write, may grant or revoke these rights, or create a link that
 * grants them. Nobody may grant more than they have, and only owners may manage owners.
 */
export function mayManage(acting: Rights, rights: Rights): boolean {
  if (acting.role === 'owner') return true
  return rights.role !== 'owner' && (acting.mayDeletePersons || !rights.mayDeletePersons)
}
