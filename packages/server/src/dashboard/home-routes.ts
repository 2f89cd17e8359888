import { getHome } from '@lethe/contract/dashboard-home.ts'
import { blobsHealth } from '../blobs/health.ts'
import type { DashboardApp, DashboardContext } from '../members/context.ts'
import { readDays, readHomeFacts } from './home-store.ts'

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
