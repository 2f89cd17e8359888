import { getHome } from '@lethe/contract/dashboard-home.ts'
import {
  addIdentityKey as addIdentityKeyEndpoint,
  createProject as createProjectEndpoint,
  getInstallState,
  getProject,
  getProjectSummary,
  listIdentityKeys as listIdentityKeysEndpoint,
  listProjects,
  makeIdentifySecret,
  removeIdentifySecret,
  removeIdentityKey as removeIdentityKeyEndpoint,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../api-error.ts'
import { blobsHealth } from '../blobs/health.ts'
import { writeAudit } from '../members/audit-store.ts'
import { actorOf } from '../members/authenticate.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { createIdentitySecret } from '../projects/identity.ts'
import { addIdentityKey, listIdentityKeys, removeIdentityKey } from '../projects/identity-keys.ts'
import { deleteProjectSecrets } from '../projects/secrets-store.ts'
import {
  listKeySettings,
  listProjectSettings,
  readProjectSettings,
  updateProjectSettings,
} from '../projects/settings-store.ts'
import { createProjectWithKeys } from '../projects/store.ts'
import { readDays, readHomeFacts, readInstallFacts, readProjectSummary } from './project-store.ts'

export function projectRoutes(app: DashboardApp, context: DashboardContext): void {
  readingRoutes(app, context)
  changingRoutes(app, context)
  identifySecretRoutes(app, context)
  identityKeyRoutes(app, context)
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
      const key = keys.find(({ publicText, state }) => publicText !== null && state === 'working')
      const { sampleRate, needsProof } = await readProjectSettings(db.sql, projectId)
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
        needsProof,
        ...(await readInstallFacts(db.sql, projectId)),
      }
    },
  })
}

function changingRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...createProjectEndpoint,
    handler: async (request, reply) => {
      const made = await db.begin(async (tx) => {
        const { project, ...keys } = await createProjectWithKeys(tx, request.body.name)
        await writeAudit(tx, { ...noteOf(request, project.id), action: 'project.created' })
        return { project: await readProjectSettings(tx, project.id), ...keys }
      })
      return reply.code(201).send(made)
    },
  })

  app.route({
    ...updateProject,
    handler: async (request) => {
      const { projectId, body } = request
      const note = noteOf(request, projectId)
      const project = await db.begin(async (tx) => {
        await writeAudit(tx, { ...note, action: 'project.changed', details: body })
        return updateProjectSettings(tx, projectId, body)
      })
      return { project }
    },
  })
}

const noteOf = (request: FastifyRequest, projectId: number) => ({
  ...actorOf(request),
  projectId,
  subject: { kind: 'project', id: String(projectId) } as const,
})

function identifySecretRoutes(app: DashboardApp, { db, recordings }: DashboardContext): void {
  app.route({
    ...makeIdentifySecret,
    handler: async (request, reply) => {
      const { projectId } = request
      const note = noteOf(request, projectId)
      const identifySecret = await db.begin(async (tx) => {
        await writeAudit(tx, { ...note, action: 'project.identify_secret_made' })
        return createIdentitySecret(tx, masterKeysOf(recordings), projectId)
      })
      return reply.code(201).send({ identifySecret })
    },
  })

  app.route({
    ...removeIdentifySecret,
    handler: async (request) => {
      const { projectId } = request
      const note = noteOf(request, projectId)
      await db.begin(async (tx) => {
        const kept = request.query.onlyOlder ? 1 : 0
        const hasEnded = await deleteProjectSecrets(tx, projectId, 'identity', kept)
        if (hasEnded) await writeAudit(tx, { ...note, action: 'project.identify_secret_removed' })
      })
      return {}
    },
  })
}

function identityKeyRoutes(app: DashboardApp, { db }: DashboardContext): void {
  app.route({
    ...listIdentityKeysEndpoint,
    handler: async ({ projectId }) => ({ keys: await listIdentityKeys(db.sql, projectId) }),
  })

  app.route({
    ...addIdentityKeyEndpoint,
    handler: async (request, reply) => {
      const { projectId, body } = request
      const note = noteOf(request, projectId)
      const keys = await db.begin(async (tx) => {
        const isNew = await addIdentityKey(tx, projectId, body.publicKey)
        if (isNew) await writeAudit(tx, { ...note, action: 'project.identity_key_added' })
        return listIdentityKeys(tx, projectId)
      })
      return reply.code(201).send({ keys })
    },
  })

  app.route({
    ...removeIdentityKeyEndpoint,
    handler: async (request) => {
      const { projectId, params } = request
      const note = noteOf(request, projectId)
      const keys = await db.begin(async (tx) => {
        const isRemoved = await removeIdentityKey(tx, projectId, params.keyId)
        if (isRemoved) await writeAudit(tx, { ...note, action: 'project.identity_key_removed' })
        return listIdentityKeys(tx, projectId)
      })
      return { keys }
    },
  })
}

function masterKeysOf(recordings: DashboardContext['recordings']) {
  if (!recordings) throw new ApiError('not_found', 'This service does not accept recordings.')
  return recordings.browserKeys.masterKeys
}

export function homeRoutes(app: DashboardApp, { db, recordings }: DashboardContext): void {
  const health = blobsHealth(recordings?.blobs)
  app.route({
    ...getHome,
    handler: async ({ projectId }) => {
      const days = await readDays(db.sql, projectId)
      const facts = await readHomeFacts(db.sql, projectId)
      const { sessionId, startedAt, storedBytes, open, failed, overdue, oldestOpenAt } = facts
      return {
        days,
        storedBytes,
        lastSession: sessionId !== null && startedAt !== null ? { id: sessionId, startedAt } : null,
        deletions: { open, failed, overdue, oldestOpenAt },
        worker: facts.isWorkerThere ? ('ok' as const) : ('failed' as const),
        storage: (await health()).state,
      }
    },
  })
}
