import {
  inviteMember,
  listMembers,
  type Member,
  makeResetLink as makeResetLinkEndpoint,
  removeMember,
  updateMember as updateMemberEndpoint,
  withdrawInvitation,
} from '@lethe/contract/dashboard-members.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { isUuid } from '../http/parameters.ts'
import type { Sql } from '../sql.ts'
import { mayManage, permissionsOf, type Rights } from './access.ts'
import { writeAudit } from './audit-store.ts'
import { actorOf, memberOf } from './authenticate.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { invitationHours, linkTo, makeResetLink, newToken } from './links.ts'
import { publicUrlOf } from './origin.ts'
import {
  countOwners,
  deleteInvitation,
  deleteLinksOf,
  deleteMember,
  findInvitation,
  findMember,
  findMemberByEmail,
  insertInvitation,
  listInvitations,
  listMembers as listRows,
  lockMember,
  lockMembers,
  updateMember,
} from './store.ts'

/** Managing the members of the installation. */
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
      const rights = rightsOf(request.body)
      const email = request.body.email.toLowerCase()
      const { token, tokenHash } = newToken()
      const invitation = await db.begin(async (tx) => {
        const acting = await lockedActing(tx, request)
        refuseUnlessMayManage(acting, rights)
        if (await findMemberByEmail(tx, email)) {
          throw new ApiError('member_exists', 'There is already a member with this email.')
        }
        // Replacing an earlier invitation withdraws it.
        const earlier = (await listInvitations(tx)).find((one) => one.email === email)
        if (earlier) refuseUnlessMayManage(acting, earlier)
        const made = await insertInvitation(tx, {
          ...rights,
          email,
          tokenHash,
          hours: invitationHours,
          madeBy: memberOf(request).memberId,
        })
        await writeAudit(tx, {
          ...actorOf(request),
          action: 'member.invited',
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
      await db.begin(async (tx) => {
        const acting = await lockedActing(tx, request)
        const invitation = isUuid(id) ? await findInvitation(tx, id) : undefined
        if (!invitation) throw new ApiError('link_invalid', 'No invitation with this id.')
        refuseUnlessMayManage(acting, invitation)
        await deleteInvitation(tx, id)
        await writeAudit(tx, {
          ...actorOf(request),
          action: 'member.invitation_withdrawn',
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
      const member = await db.begin(async (tx) => {
        const before = await lockedMember(tx, request.params.memberId)
        const acting = await lockedActing(tx, request)
        const after = rightsOf({ ...rightsOf(before), ...request.body })
        refuseUnlessMayManage(acting, before)
        refuseUnlessMayManage(acting, after)
        if (before.role === 'owner' && after.role !== 'owner') await refuseLastOwner(tx)
        await writeAudit(tx, {
          ...actorOf(request),
          action: 'member.changed',
          subject: { kind: 'member', id: before.id },
          details: { email: before.email, ...after },
        })
        if (!isSame(before, after)) await deleteLinksOf(tx, before.id)
        return updateMember(tx, before.id, after)
      })
      return { member: member as Member }
    },
  })

  app.route({
    ...removeMember,
    handler: async (request) => {
      await db.begin(async (tx) => {
        const member = await lockedMember(tx, request.params.memberId)
        const acting = await lockedActing(tx, request)
        refuseUnlessMayManage(acting, member)
        if (member.role === 'owner') await refuseLastOwner(tx)
        await deleteMember(tx, member.id)
        await writeAudit(tx, {
          ...actorOf(request),
          action: 'member.removed',
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
      const { memberId: id } = request.params
      const { memberId: madeBy } = memberOf(request)
      if (id === madeBy) {
        throw new ApiError('forbidden', 'Change your own password in your account.')
      }
      const made = await db.begin(async (tx) => {
        const member = await lockedMember(tx, id)
        // The link gives access to that member's account.
        refuseUnlessMayManage(await lockedActing(tx, request), member)
        const subject = { kind: 'member', id } as const
        const details = { email: member.email }
        const actor = actorOf(request)
        await writeAudit(tx, { ...actor, action: 'member.reset_link_made', subject, details })
        const publicUrl = publicUrlOf(request, context.publicUrl)
        return makeResetLink(tx, publicUrl, { memberId: id, madeBy })
      })
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
    'Only owners can manage owners, and nobody can grant a permission they do not have.',
  )
}

/** Whether two members have the same rights. */
function isSame(one: Rights, other: Rights): boolean {
  return one.role === other.role && one.mayDeletePersons === other.mayDeletePersons
}

/**
 * Locks and returns the current rights of the requesting member, which may have been revoked since the
 * request arrived.
 */
async function lockedActing(tx: Sql, request: FastifyRequest): Promise<Rights> {
  const rights = await lockMember(tx, memberOf(request).memberId)
  if (!rights) throw new ApiError('unauthorized', 'This member was removed.')
  if (!permissionsOf(rights).includes('members.write')) {
    throw new ApiError('forbidden', 'This needs the permission members.write.')
  }
  return rights
}

async function lockedMember(tx: Sql, id: string): Promise<Member> {
  await lockMembers(tx)
  const member = isUuid(id) ? await findMember(tx, id) : undefined
  if (!member) throw memberNotFound()
  return member
}

async function refuseLastOwner(tx: Sql): Promise<void> {
  if ((await countOwners(tx)) > 1) return
  throw new ApiError('last_owner', 'This is the last owner. Make another member an owner first.')
}

function memberNotFound(): ApiError {
  return new ApiError('member_not_found', 'No member with this id.')
}
