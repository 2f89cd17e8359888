import type * as deletions from '@lethe/contract/dashboard-deletions.ts'
import type * as members from '@lethe/contract/dashboard-members.ts'
import type { Permission } from '@lethe/contract/dashboard-members.ts'
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
  | OperationOf<typeof members>
  | OperationOf<typeof persons>
  | OperationOf<typeof projects>
  | OperationOf<typeof sessions>
  | OperationOf<typeof system>
  | OperationOf<typeof webhooks>

/** Who may call an endpoint: anyone, any member who is signed in, or those with a permission. */
export type Access = 'anyone' | 'any member' | Permission

/** The one place that says who may do what: an endpoint that is not in it does not compile. */
export const access: Record<Operation, Access> = {
  getMe: 'anyone',
  checkLink: 'anyone',
  setUp: 'anyone',
  acceptInvitation: 'anyone',
  resetPassword: 'anyone',
  signIn: 'anyone',
  signInWithCode: 'anyone',
  signOut: 'anyone',

  updateMe: 'any member',
  changePassword: 'any member',
  startSecondFactor: 'any member',
  confirmSecondFactor: 'any member',
  removeSecondFactor: 'any member',
  listSignIns: 'any member',
  endOtherSignIns: 'any member',

  listMembers: 'members.read',
  inviteMember: 'members.write',
  withdrawInvitation: 'members.write',
  updateMember: 'members.write',
  removeMember: 'members.write',
  makeResetLink: 'members.write',

  listProjects: 'projects.read',
  getProject: 'projects.read',
  getProjectSummary: 'projects.read',
  getInstallState: 'projects.read',
  createProject: 'projects.write',
  updateProject: 'projects.write',

  listKeys: 'keys.read',
  createKey: 'keys.write',
  rotateKey: 'keys.write',
  revokeKey: 'keys.write',
  updateKey: 'keys.write',
  makeIdentifySecret: 'keys.write',
  removeIdentifySecret: 'keys.write',

  listPersonSummaries: 'persons.read',
  getPersonDetail: 'persons.read',
  listPersonBrowsers: 'persons.read',
  listPersonActivity: 'persons.read',
  updatePersonDetail: 'persons.write',
  previewDeletion: 'persons.delete',
  requestDeletions: 'persons.delete',

  listDeletions: 'deletions.read',
  getDeletion: 'deletions.read',
  getReceipt: 'deletions.read',
  exportDeletions: 'deletions.read',

  listSessions: 'sessions.read',
  getSession: 'sessions.read',
  getSessionEvents: 'sessions.read',

  listWebhooks: 'webhooks.read',
  listDeliveries: 'webhooks.read',
  createWebhook: 'webhooks.write',
  updateWebhook: 'webhooks.write',
  removeWebhook: 'webhooks.write',
  rotateWebhookSecret: 'webhooks.write',
  testWebhook: 'webhooks.write',
  resendDelivery: 'webhooks.write',

  listAuditEntries: 'audit.read',
  getSystem: 'system.read',
}
