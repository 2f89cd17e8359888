import { setTimeout as sleep } from 'node:timers/promises'
import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { defineCommand } from 'citty'
import { ApiError } from '../src/api-error.ts'
import { findDeletionJob } from '../src/erasure/jobs.ts'
import { requestDeletion } from '../src/erasure/request.ts'
import { startWorker } from '../src/erasure/worker.ts'
import {
  existingProject,
  JobFailed,
  json,
  print,
  project,
  UsageError,
  withDatabase,
} from './command.ts'
import type { Opened } from './open.ts'
import { withErasure } from './open-erasure.ts'

const waitMilliseconds = 100

export const erase = defineCommand({
  meta: { name: 'erase', description: 'Request the erasure of a person.' },
  args: {
    externalId: { type: 'positional', required: true, description: "The person's externalId." },
    project,
    'keep-recordings': {
      type: 'boolean',
      description: 'Keep the recordings, but make them anonymous.',
    },
    wait: {
      type: 'boolean',
      description:
        'Wait until the job has ended, and work on deletion jobs meanwhile. Exits with 3 if it failed.',
    },
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const { id: projectId } = await existingProject(opened, args.project)
      const requested = await request(opened, {
        projectId,
        externalId: args.externalId,
        keepRecordings: args['keep-recordings'] === true,
      })
      const job = args.wait ? await workUntilEnded(opened, projectId, requested.id) : requested
      if (args.json) print(JSON.stringify({ job }))
      else print(`Deletion job ${job.id}: ${job.status}`)
      if (job.status === 'failed') {
        throw new JobFailed('The erasure failed; `lethe jobs show` shows the step.')
      }
    }),
})

async function request(
  { db }: Opened,
  person: { projectId: number; externalId: string; keepRecordings: boolean },
): Promise<DeletionJob> {
  try {
    return await requestDeletion(db, { ...person, requestedBy: 'command' })
  } catch (error) {
    if (error instanceof ApiError) throw new UsageError(error.message)
    throw error
  }
}

/** Runs a worker, so that the job ends even if no service runs. */
async function workUntilEnded(opened: Opened, projectId: number, id: string): Promise<DeletionJob> {
  let ended: DeletionJob | undefined
  await withErasure(opened, async ({ options }) => {
    const worker = startWorker(options)
    try {
      while (ended === undefined) {
        const job = (await findDeletionJob(opened.db.short, projectId, id)) as DeletionJob
        if (job.status === 'completed' || job.status === 'failed') ended = job
        else await sleep(waitMilliseconds)
      }
    } finally {
      await worker.stop()
    }
  })
  return ended as unknown as DeletionJob
}
