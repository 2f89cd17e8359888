import {
  inviteMember,
  listMembers,
  type Member,
  makeResetLink as makeResetLinkEndpoint,
  removeMember,
  updateMember as updateMemberEndpoint,
  withdrawInvitation,
} from '@lethe/contract/dashboard-members.ts'
import { ApiError } from '../api-error.ts'
import { writeAudit } from '../dashboard/audit-store.ts'
import type { DashboardApp, DashboardContext } from '../dashboard/context.ts'
import { publicUrlOf } from '../dashboard/origin.ts'
import type { Sql } from '../sql.ts'
import { isUuid } from '../uuid.ts'
import { memberOf } from './authenticate.ts'
import { invitationHours, linkTo, makeResetLink, newToken } from './links.ts'
import { mayManage, type Rights } from './permissions.ts'
import {
  countOwners,
  deleteInvitation,
  deleteMember,
  findInvitation,
  findMember,
  findMemberByEmail,
  insertInvitation,
  listInvitations,
  listMembers as listRows,
  lockMembers,
  updateMember,
} from './store.ts'

/** Members of the installation, as those who manage them see them. */
export function memberRoutes(app: DashboardApp, context: DashboardContext): void {
  invitationRoutes(app, context)
  changeRoutes(app, context)
  resetRoutes(app, context)
}

function invitationRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...listMembers,
    handler: async () => ({
      members: await listRows(db.sql),
      invitations: await listInvitations(db.sql),
    }),
  })

  app.route({
    ...inviteMember,
    handler: async (request, reply) => {
      const acting = memberOf(request)
      const rights = rightsOf(request.body)
      const email = request.body.email.toLowerCase()
      refuseUnlessMayManage(acting, rights)
      const { token, tokenHash } = newToken()
      const invitation = await db.begin(async (tx) => {
        if (await findMemberByEmail(tx, email)) {
          throw new ApiError('member_exists', 'This e-mail is a member already.')
        }
        const made = await insertInvitation(tx, {
          ...rights,
          email,
          tokenHash,
          hours: invitationHours,
        })
        await writeAudit(tx, {
          action: 'member.invited',
          memberId: acting.memberId,
          subject: { kind: 'invitation', id: made.id },
          details: { email, ...rights },
        })
        return made
      })
      const link = linkTo(publicUrlOf(request, context.publicUrl), 'invitation', token)
      return reply.code(201).send({ invitation, link })
    },
  })

  app.route({
    ...withdrawInvitation,
    handler: async (request) => {
      const { invitationId: id } = request.params
      const acting = memberOf(request)
      await db.begin(async (tx) => {
        const invitation = isUuid(id) ? await findInvitation(tx, id) : undefined
        if (!invitation) throw new ApiError('link_invalid', 'No invitation with this id.')
        refuseUnlessMayManage(acting, invitation)
        await deleteInvitation(tx, id)
        await writeAudit(tx, {
          action: 'member.invitation_withdrawn',
          memberId: acting.memberId,
          subject: { kind: 'invitation', id },
          details: { email: invitation.email },
        })
      })
      return {}
    },
  })
}

function changeRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...updateMemberEndpoint,
    handler: async (request) => {
      const acting = memberOf(request)
      const member = await db.begin(async (tx) => {
        const before = await lockedMember(tx, request.params.memberId)
        const after = rightsOf({ ...rightsOf(before), ...request.body })
        refuseUnlessMayManage(acting, before)
        refuseUnlessMayManage(acting, after)
        if (before.role === 'owner' && after.role !== 'owner') await refuseLastOwner(tx)
        await writeAudit(tx, {
          action: 'member.changed',
          memberId: acting.memberId,
          subject: { kind: 'member', id: before.id },
          details: { email: before.email, ...after },
        })
        return updateMember(tx, before.id, after)
      })
      return { member: member as Member }
    },
  })

  app.route({
    ...removeMember,
    handler: async (request) => {
      const acting = memberOf(request)
      await db.begin(async (tx) => {
        const member = await lockedMember(tx, request.params.memberId)
        refuseUnlessMayManage(acting, member)
        if (member.role === 'owner') await refuseLastOwner(tx)
        await deleteMember(tx, member.id)
        await writeAudit(tx, {
          action: 'member.removed',
          memberId: acting.memberId,
          subject: { kind: 'member', id: member.id },
          details: { email: member.email, role: member.role },
        })
      })
      return {}
    },
  })
}

function resetRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...makeResetLinkEndpoint,
    handler: async (request, reply) => {
      const acting = memberOf(request)
      const { memberId: id } = request.params
      const member = isUuid(id) ? await findMember(db.sql, id) : undefined
      if (!member) throw memberNotFound()
      // Who has the link can be that member.
      refuseUnlessMayManage(acting, member)
      const made = await makeResetLink(db, publicUrlOf(request, context.publicUrl), id)
      const subject = { kind: 'member', id } as const
      const { memberId } = acting
      const details = { email: member.email }
      await writeAudit(db.sql, { action: 'member.reset_link_made', memberId, subject, details })
      return reply.code(201).send(made)
    },
  })
}

/** An owner always may delete persons. */
function rightsOf({ role, mayDeletePersons }: Rights): Rights {
  return { role, mayDeletePersons: mayDeletePersons || role === 'owner' }
}

function refuseUnlessMayManage(acting: Rights, rights: Rights): void {
  if (mayManage(acting, rights)) return
  throw new ApiError(
    'forbidden',
    'Only an owner manages owners, and nobody gives a permission they do not have.',
  )
}

async function lockedMember(tx: Sql, id: string): Promise<Member> {
  await lockMembers(tx)
  const member = isUuid(id) ? await findMember(tx, id) : undefined
  if (!member) throw memberNotFound()
  return member
}

async function refuseLastOwner(tx: Sql): Promise<void> {
  if ((await countOwners(tx)) > 1) return
  throw new ApiError('last_owner', 'This is the last owner; make another one first.')
}

function memberNotFound(): ApiError {
  return new ApiError('member_not_found', 'No member with this id.')
}
