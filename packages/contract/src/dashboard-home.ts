import { Type } from 'typebox'
import { ProjectPath } from './dashboard-projects.ts'
import { projectErrors } from './errors.ts'
import { Instant, InstantOrNull } from './page.ts'

const Health = Type.Unsafe<'ok' | 'failed' | 'unknown'>(
  Type.String({ enum: ['ok', 'failed', 'unknown'] }),
)

/** An overview of a project. Days are UTC, oldest first, without gaps. */
export const getHome = {
  method: 'GET',
  url: '/dashboard/v1/projects/:projectId/home',
  schema: {
    operationId: 'getHome',
    params: ProjectPath,
    response: {
      200: Type.Object({
        days: Type.Array(
          Type.Object({
            day: Type.String({ format: 'date' }),
            sessions: Type.Integer(),
            /** The people created on that day. */
            people: Type.Integer(),
            /** Of chunks as they were sent. */
            bytes: Type.Number(),
          }),
        ),
        /** What is stored of recordings, as compressed and sealed. */
        storedBytes: Type.Number(),
        lastSession: Type.Union([
          Type.Object({ id: Type.String(), startedAt: Instant }),
          Type.Null(),
        ]),
        deletions: Type.Object({
          open: Type.Integer(),
          failed: Type.Integer(),
          /** Requested more than a month ago, and not completed. */
          overdue: Type.Integer(),
          oldestOpenAt: InstantOrNull,
        }),
        worker: Health,
        storage: Health,
      }),
      ...projectErrors(),
    },
  },
} as const
