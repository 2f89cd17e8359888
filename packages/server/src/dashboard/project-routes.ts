import {
  createProject as createProjectEndpoint,
  getInstallState,
  getProject,
  getProjectSummary,
  listProjects,
  makeIdentifySecret,
  removeIdentifySecret,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { memberOf } from '../members/authenticate.ts'
import {
  listKeySettings,
  listProjectSettings,
  makeIdentifySecret as makeSecret,
  readProjectSettings,
  removeIdentifySecret as removeSecret,
  updateProjectSettings,
} from '../projects/settings-store.ts'
import { createProjectWithKeys, demoKeyName } from '../projects/store.ts'
import { writeAudit } from './audit-store.ts'
import type { DashboardApp, DashboardContext } from './context.ts'
import { readInstallFacts, readProjectSummary } from './project-store.ts'

export function projectRoutes(app: DashboardApp, context: DashboardContext): void {
  readingRoutes(app, context)
  changingRoutes(app, context)
  identifySecretRoutes(app, context)
}

function readingRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...listProjects,
    handler: async () => ({ projects: await listProjectSettings(db.sql) }),
  })

  app.route({
    ...getProject,
    handler: async ({ projectId }) => ({ project: await readProjectSettings(db.sql, projectId) }),
  })

  app.route({
    ...getProjectSummary,
    handler: async ({ projectId }) => readProjectSummary(db.sql, projectId),
  })

  app.route({
    ...getInstallState,
    handler: async ({ projectId }) => {
      const keys = await listKeySettings(db.sql, projectId)
      const usable = keys.filter(
        ({ publicText, state }) => publicText !== null && state === 'working',
      )
      const key = usable.find(({ name }) => name !== demoKeyName) ?? usable[0]
      const { sampleRate, hasIdentifySecret } = await readProjectSettings(db.sql, projectId)
      return {
        publicKey: key
          ? {
              id: key.id,
              name: key.name,
              text: key.publicText as string,
              lastUsedAt: key.lastUsedAt,
              allowedOrigins: key.allowedOrigins,
            }
          : null,
        sampleRate,
        hasIdentifySecret,
        ...(await readInstallFacts(db.sql, projectId)),
      }
    },
  })
}

function changingRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...createProjectEndpoint,
    handler: async (request, reply) => {
      const { memberId } = memberOf(request)
      const made = await db.begin(async (tx) => {
        const { project, ...keys } = await createProjectWithKeys(tx, request.body.name)
        const { id } = project
        await writeAudit(tx, {
          action: 'project.created',
          memberId,
          projectId: id,
          subject: { kind: 'project', id: String(id) },
        })
        return { project: await readProjectSettings(tx, id), ...keys }
      })
      return reply.code(201).send(made)
    },
  })

  app.route({
    ...updateProject,
    handler: async (request) => {
      const { projectId, body } = request
      const { memberId } = memberOf(request)
      const project = await db.begin(async (tx) => {
        await writeAudit(tx, {
          action: 'project.changed',
          memberId,
          projectId,
          subject: { kind: 'project', id: String(projectId) },
          details: body,
        })
        return updateProjectSettings(tx, projectId, body)
      })
      return { project }
    },
  })
}

function identifySecretRoutes(app: DashboardApp, { db }: DashboardContext): void {
  const noteOf = (projectId: number, memberId: string) => ({
    memberId,
    projectId,
    subject: { kind: 'project', id: String(projectId) } as const,
  })

  app.route({
    ...makeIdentifySecret,
    handler: async (request, reply) => {
      const { projectId } = request
      const note = noteOf(projectId, memberOf(request).memberId)
      const identifySecret = await db.begin(async (tx) => {
        await writeAudit(tx, { ...note, action: 'project.identify_secret_made' })
        return makeSecret(tx, projectId)
      })
      return reply.code(201).send({ identifySecret })
    },
  })

  app.route({
    ...removeIdentifySecret,
    handler: async (request) => {
      const { projectId } = request
      const note = noteOf(projectId, memberOf(request).memberId)
      await db.begin(async (tx) => {
        await writeAudit(tx, { ...note, action: 'project.identify_secret_removed' })
        await removeSecret(tx, projectId)
      })
      return {}
    },
  })
}
