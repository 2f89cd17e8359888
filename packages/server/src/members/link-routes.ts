import {
  acceptInvitation,
  checkLink,
  resetPassword,
  setUp,
} from '@lethe/contract/dashboard-members.ts'
import { ApiError } from '../api-error.ts'
import { addressRangeOf } from '../http/network.ts'
import { updateProjectSettings } from '../projects/settings-store.ts'
import { createProjectWithKeys, listProjects } from '../projects/store.ts'
import type { Sql } from '../sql.ts'
import { writeAudit } from './audit-store.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { hashOfToken } from './links.ts'
import { signInByPassword } from './sign-in.ts'
import {
  deleteSetUpLinks,
  findLink,
  findMember,
  hasOwner,
  insertMember,
  type Link,
  lockMembers,
  replacePassword,
  takeLink,
} from './store.ts'
import { limitLinks } from './tries.ts'

/** Links for the first owner, for new members, and for password resets. */
export function linkRoutes(app: DashboardApp, context: DashboardContext): void {
  checkRoutes(app, context)
  setUpRoutes(app, context)
  invitationRoutes(app, context)
  resetRoutes(app, context)
}

function checkRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...checkLink,
    handler: async (request) => {
      await limitLinks(db.sql, request.ip)
      const link = await findLink(db.sql, hashOfToken(request.body.token))
      if (!link) throw linkInvalid()
      const { kind, expiresAt } = link
      if (kind !== 'set_up') {
        return { kind, email: link.email, role: link.role, projectName: null, expiresAt }
      }
      const [project] = await listProjects(db.sql)
      return { kind, email: null, role: null, projectName: project?.name ?? null, expiresAt }
    },
  })
}

function setUpRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...setUp,
    handler: async (request, reply) => {
      const { token, name, password, projectName } = request.body
      const email = request.body.email.toLowerCase()
      await limitLinks(db.sql, request.ip)
      const passwordHash = await hashOfPassword(context, password)
      const { memberId, ...answer } = await db.begin(async (tx) => {
        await takeValidLink(tx, token, 'set_up')
        await lockMembers(tx)
        if (await hasOwner(tx)) throw linkInvalid()
        const owner = { role: 'owner', mayDeletePersons: true } as const
        const member = await insertMember(tx, { ...owner, name, email, passwordHash })
        if (!member) throw linkInvalid()
        await deleteSetUpLinks(tx)
        const addressRange = addressRangeOf(request.ip)
        await writeAudit(tx, { action: 'set_up.done', memberId: member.id, addressRange })
        return { memberId: member.id, ...(await firstProject(tx, projectName)) }
      })
      await signInByPassword(context, request, reply, { email, password })
      return reply.code(201).send({ member: await existingMember(db.sql, memberId), ...answer })
    },
  })
}

function invitationRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...acceptInvitation,
    handler: async (request, reply) => {
      const { token, name, password } = request.body
      await limitLinks(db.sql, request.ip)
      const passwordHash = await hashOfPassword(context, password)
      const { id, email } = await db.begin(async (tx) => {
        const { email, role, mayDeletePersons } = await takeValidLink(tx, token, 'invitation')
        const rights = { role, mayDeletePersons }
        const member = await insertMember(tx, { ...rights, name, email, passwordHash })
        if (!member)
          throw new ApiError('member_exists', 'There is already a member with this email.')
        await writeAudit(tx, {
          action: 'member.joined',
          memberId: member.id,
          addressRange: addressRangeOf(request.ip),
          subject: { kind: 'member', id: member.id },
          details: rights,
        })
        return member
      })
      await signInByPassword(context, request, reply, { email, password })
      return reply.code(201).send({ member: await existingMember(db.sql, id) })
    },
  })
}

function resetRoutes(app: DashboardApp, context: DashboardContext): void {
  const { db } = context

  app.route({
    ...resetPassword,
    handler: async (request) => {
      const { token, password } = request.body
      await limitLinks(db.sql, request.ip)
      const passwordHash = await hashOfPassword(context, password)
      await db.begin(async (tx) => {
        const { memberId } = await takeValidLink(tx, token, 'reset')
        await replacePassword(tx, memberId, passwordHash)
        const subject = { kind: 'member', id: memberId } as const
        const addressRange = addressRangeOf(request.ip)
        await writeAudit(tx, { action: 'member.password_reset', memberId, addressRange, subject })
      })
      return {}
    },
  })
}

async function hashOfPassword({ signIn }: DashboardContext, password: string): Promise<string> {
  return (await (await signIn()).$context).password.hash(password)
}

async function takeValidLink<Kind extends Link['kind']>(tx: Sql, token: string, kind: Kind) {
  const link = await takeLink(tx, hashOfToken(token), kind)
  if (!link) throw linkInvalid()
  return link as Extract<Link, { kind: Kind }>
}

function linkInvalid(): ApiError {
  return new ApiError('link_invalid', 'This link was used, replaced or revoked, or it expired.')
}

/** Names an existing project, which keeps its keys, or creates one. */
async function firstProject(tx: Sql, name: string) {
  const [existing] = await listProjects(tx)
  if (existing) {
    await updateProjectSettings(tx, existing.id, { name })
    return { project: { id: String(existing.id), name }, secretKey: null, publicKey: null }
  }
  const { project, ...keys } = await createProjectWithKeys(tx, name)
  return { project: { id: String(project.id), name }, ...keys }
}

async function existingMember(sql: Sql, id: string) {
  const member = await findMember(sql, id)
  if (!member) throw new ApiError('unauthorized', 'This member was removed.')
  return member
}
