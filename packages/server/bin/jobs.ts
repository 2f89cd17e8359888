import type { DeletionJob } from '@lethe/contract/deletion-job.ts'
import { defineCommand } from 'citty'
import { findDeletionJob, findDeletionJobDetails, listDeletionJobs } from '../src/erasure/jobs.ts'
import { isUuid } from '../src/http/parameters.ts'
import {
  existingProject,
  json,
  print,
  printTable,
  project,
  UsageError,
  withDatabase,
} from './command.ts'

const statuses = ['pending', 'running', 'completed', 'failed'] as const

const list = defineCommand({
  meta: { name: 'list', description: 'List the deletion jobs of a project, newest first.' },
  args: {
    project,
    status: {
      type: 'string',
      description: 'Only jobs with this status: pending, running, completed or failed.',
    },
    limit: {
      type: 'string',
      default: '50',
      description: 'The maximum number of jobs to list, up to 1000.',
    },
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const status = statuses.find((one) => one === args.status)
      if (args.status !== undefined && !status) {
        throw new UsageError(`--status must be one of ${statuses.join(', ')}.`)
      }
      const limit = /^\d{1,4}$/.test(args.limit) ? Number(args.limit) : 0
      if (limit < 1 || limit > 1_000)
        throw new UsageError('--limit must be a number from 1 to 1000.')
      const { id } = await existingProject(opened, args.project)
      const filter = { ...(status && { status }) }
      const jobs = await listDeletionJobs(opened.db.sql, id, filter, null, limit)
      if (args.json) print(JSON.stringify({ jobs }))
      else printTable(jobs, columns)
    }),
})

const columns: Partial<Record<keyof DeletionJob, string>> = {
  id: 'ID',
  status: 'STATUS',
  externalId: 'PERSON',
  keepRecordings: 'KEEP',
  createdAt: 'CREATED',
  completedAt: 'COMPLETED',
}

const show = defineCommand({
  meta: { name: 'show', description: 'Show a deletion job, its attempts and what it removed.' },
  args: {
    id: { type: 'positional', required: true, description: "The job's id." },
    project,
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const { sql } = opened.db
      const { id: projectId } = await existingProject(opened, args.project)
      const job = isUuid(args.id) ? await findDeletionJob(sql, projectId, args.id) : undefined
      const details = job && (await findDeletionJobDetails(sql, projectId, job.id))
      if (!job || !details) {
        throw new UsageError('There is no such deletion job; `lethe jobs list` shows them.')
      }
      if (args.json) {
        print(JSON.stringify({ job, details }))
        return
      }
      const { attempts, removed, nextAttemptAt, requestedBy } = details
      printTable([job], columns)
      print(
        `\nRequested by ${requestedBy}.${nextAttemptAt ? ` Next attempt ${nextAttemptAt}.` : ''}`,
      )
      print(
        `Removed so far: ${removed.sessions} sessions, ${removed.chunks} chunks, ${removed.blobs} blobs (${removed.bytes} bytes), ${removed.browsers} browsers.\n`,
      )
      printTable(attempts, {
        number: 'ATTEMPT',
        startedAt: 'STARTED',
        endedAt: 'ENDED',
        outcome: 'OUTCOME',
        step: 'STEP',
        errorCode: 'ERROR',
      })
    }),
})

export const jobs = defineCommand({
  meta: { name: 'jobs', description: 'List and show deletion jobs.' },
  subCommands: { list, show },
})
