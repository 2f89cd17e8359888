import { Type } from 'typebox'
import { ofProject } from './endpoint.ts'
import { projectErrors } from './errors.ts'
import { choice, Instant, InstantOrNull, OrNull } from './schemas.ts'

const Health = choice('ok', 'failed', 'unknown')

/** An overview of a project. Days are UTC, oldest first, without gaps. */
export const getHome = ofProject('getHome', 'GET', '/home', {
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
      /** The stored size of recordings, compressed and sealed. */
      storedBytes: Type.Number(),
      lastSession: OrNull(Type.Object({ id: Type.String(), startedAt: Instant })),
      deletions: Type.Object({
        open: Type.Integer(),
        failed: Type.Integer(),
        /** Requested more than a month ago and not completed. */
        overdue: Type.Integer(),
        oldestOpenAt: InstantOrNull,
      }),
      worker: Health,
      storage: Health,
    }),
    ...projectErrors(),
  },
})
