import { getDeletionJob, listDeletionJobs, requestDeletions } from '@lethe/contract/deletion-job.ts'
import { getPublicKeys, getReceipt } from '@lethe/contract/receipt.ts'
import { describe, expect } from 'vitest'
import { verifyReceipt } from '../src/erasure/receipts.ts'
import { requestDeletions as requestMany } from '../src/erasure/request.ts'
import type { Db } from '../src/sql.ts'
import { record, runAll, test } from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

const jobFields = [
  'id',
  'externalId',
  'keepRecordings',
  'status',
  'createdAt',
  'startedAt',
  'completedAt',
]

describe('POST /v1/deletion-jobs', () => {
  test('202: a result for each person in the order asked, a job or why there is none', async ({
    erasure,
    project,
    service,
  }) => {
    for (const one of ['ada', 'bob', 'eve']) await record(erasure, project.id, one, { browsers: 0 })
    await service.send('/v1/persons/eve?keepRecordings=true', { method: 'DELETE' })
    const answer = await service.send('/v1/deletion-jobs', {
      method: 'POST',
      body: { externalIds: ['bob', 'nobody', 'ada', 'eve', 'bob'] },
    })
    expect(answer.status).toBe(202)
    expect(answer.json).toEqual({
      results: [
        {
          externalId: 'bob',
          job: expect.objectContaining({ externalId: 'bob', status: 'pending' }),
        },
        { externalId: 'nobody', error: { code: 'person_not_found', message: expect.any(String) } },
        { externalId: 'ada', job: expect.objectContaining({ keepRecordings: false }) },
        { externalId: 'eve', error: { code: 'deletion_in_progress', message: expect.any(String) } },
        { externalId: 'bob', job: expect.anything() },
      ],
    })
    const [first, , , , last] = answer.json.results
    expect(Object.keys(first.job)).toEqual(jobFields)
    // Asked for twice, it is one job.
    expect(last).toEqual(first)
  })

  test('keepRecordings is for all of them, and a thousand go at once', async ({
    erasure,
    project,
    service,
    db,
  }) => {
    await db.sql`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (extract(epoch from now) * 1000)::bigint << 20 | n, 'p' || n, '{}',
        now, now
      from generate_series(1, 1000) n, app_now() as now`
    const { body } = await service.call(requestDeletions, {
      body: {
        externalIds: Array.from({ length: 1_000 }, (_, i) => `p${i + 1}`),
        keepRecordings: true,
      },
    })
    const jobs = body.results.map((result) => ('job' in result ? result.job : undefined))
    expect(jobs.every((job) => job?.keepRecordings)).toBe(true)
    expect(new Set(jobs.map((job) => job?.id)).size).toBe(1_000)
    expect(erasure.logged()).toBe('')
  })

  test('400 invalid_request, and nothing is requested', async ({
    erasure,
    project,
    service,
    db,
  }) => {
    await record(erasure, project.id, 'grace', { browsers: 0 })
    for (const body of [
      {},
      { externalIds: [] },
      { externalIds: 'grace' },
      { externalIds: ['grace', 1] },
      { externalIds: Array(1_001).fill('grace') },
      { externalIds: ['grace', '\0'] },
      { externalIds: ['grace'], keepRecordings: 'true' },
      { externalIds: ['grace'], keepRecordings: null },
      { externalIds: ['grace'], other: 1 },
    ]) {
      const answer = await service.send('/v1/deletion-jobs', { method: 'POST', body })
      expect([answer.status, answer.json.error.code], JSON.stringify(body).slice(0, 80)).toEqual([
        400,
        'invalid_request',
      ])
      expect(answer.text).not.toContain('grace')
    }
    // Which one of a thousand it was.
    const body = { externalIds: [...Array(7).fill('grace'), 1, 'grace'] }
    const { json } = await service.send('/v1/deletion-jobs', { method: 'POST', body })
    expect(json.error.details).toEqual([
      { path: '/body/externalIds/7', issue: expect.stringContaining('string') },
    ])
    expect(await db.sql`select from deletion_jobs where project_id = ${project.id}`).toEqual([])
  })

  test('an invalid id gets an error in its place, and the others get jobs', async ({
    erasure,
    project,
    service,
  }) => {
    for (const one of ['ada', 'bob']) await record(erasure, project.id, one, { browsers: 0 })
    const externalIds = ['ada', '', 'x'.repeat(201), '😀'.repeat(200), 'bob']
    const { body } = await service.call(requestDeletions, { body: { externalIds } })
    expect(body.results.map(({ externalId }) => externalId)).toEqual(externalIds)
    expect(body.results.map((one) => ('job' in one ? one.job.status : one.error.code))).toEqual([
      'pending',
      'invalid_request',
      'invalid_request',
      'person_not_found',
      'pending',
    ])
  })

  test('a fault with one person is its result, and the others get jobs', async ({
    erasure,
    project,
    service,
    db,
  }) => {
    const ids = Array.from({ length: 150 }, (_, i) => `p${i}`)
    for (const one of ids) await record(erasure, project.id, one, { browsers: 0 })
    await db.sql`alter table deletion_jobs add constraint broken check (external_id <> 'p7') not valid`
    const { body } = await service.call(requestDeletions, { body: { externalIds: ids } })
    await db.sql`alter table deletion_jobs drop constraint broken`
    const failed = body.results.filter((one) => 'error' in one)
    expect(failed).toEqual([
      { externalId: 'p7', error: { code: 'internal_error', message: expect.any(String) } },
    ])
    expect(body.results.map(({ externalId }) => externalId)).toEqual(ids)
    expect(await db.sql`select from deletion_jobs where project_id = ${project.id}`).toHaveLength(
      149,
    )
  })

  test('a thousand persons take few transactions', async ({ project, db }) => {
    await db.sql`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select ${project.id}, (extract(epoch from now) * 1000)::bigint << 20 | n, 'q' || n, '{}',
        now, now
      from generate_series(1, 1000) n, app_now() as now`
    let transactions = 0
    const counting: Db = {
      ...db,
      begin: (work) => {
        transactions += 1
        return db.begin(work)
      },
    }
    const externalIds = Array.from({ length: 1_000 }, (_, i) => `q${i + 1}`)
    const terms = { projectId: project.id, keepRecordings: false, requestedBy: 'command' as const }
    const results = await requestMany(counting, { ...terms, externalIds })
    expect(results.every((one) => 'job' in one)).toBe(true)
    expect(transactions).toBeLessThanOrEqual(10)
  })

  test('another project’s persons are nobody', async ({ erasure, project, service, db }) => {
    const other = await newProject(db)
    await record(erasure, other.id, 'ada', { browsers: 0 })
    const { body } = await service.call(requestDeletions, { body: { externalIds: ['ada'] } })
    expect(body.results).toMatchObject([{ error: { code: 'person_not_found' } }])
    expect(project.id).not.toBe(other.id)
  })
})

describe('GET /v1/deletion-jobs', () => {
  test('newest first, page after page, each job once, null at the end also of a full page', async ({
    erasure,
    project,
    service,
  }) => {
    const ids: string[] = []
    for (let i = 0; i < 6; i++) {
      await record(erasure, project.id, `p${i}`, { browsers: 0 })
      ids.push((await service.send(`/v1/persons/p${i}`, { method: 'DELETE' })).json.job.id)
    }
    const seen: string[] = []
    let cursor: string | null = ''
    let pages = 0
    while (cursor !== null) {
      const page: { jobs: { id: string }[]; nextCursor: string | null } = (
        await service.call(listDeletionJobs, { query: { limit: 3, ...(cursor && { cursor }) } })
      ).body
      expect(page.jobs.length).toBe(3)
      seen.push(...page.jobs.map((job) => job.id))
      cursor = page.nextCursor
      pages++
    }
    expect(pages).toBe(2)
    const created = (await service.send('/v1/deletion-jobs')).json.jobs.map(
      (job: { createdAt: string }) => job.createdAt,
    )
    expect(created).toEqual([...created].sort().reverse())
    expect(new Set(seen)).toEqual(new Set(ids))
    expect(seen.length).toBe(6)
  })

  test('finds the job of a DELETE whose response was lost, by externalId and by status', async ({
    erasure,
    project,
    service,
  }) => {
    const externalId = 'a/b ü'
    await record(erasure, project.id, externalId, { browsers: 0 })
    await record(erasure, project.id, 'other', { browsers: 0 })
    await service.call(requestDeletions, { body: { externalIds: [externalId] } })
    await runAll(erasure.options)
    await service.call(requestDeletions, { body: { externalIds: ['other'] } })

    const byId = await service.call(listDeletionJobs, { query: { externalId } })
    expect(byId.body.jobs).toMatchObject([{ externalId, status: 'completed' }])
    expect(Object.keys(byId.body.jobs[0]!)).toEqual(jobFields)
    const pending = await service.call(listDeletionJobs, { query: { status: 'pending' } })
    expect(pending.body.jobs).toMatchObject([{ externalId: 'other' }])
    const both = await service.call(listDeletionJobs, { query: { status: 'failed', externalId } })
    expect(both.body).toEqual({ jobs: [], nextCursor: null })
  })

  test('400 for an invalid limit, status or cursor', async ({ erasure, project, service }) => {
    for (let i = 0; i < 2; i++) {
      await record(erasure, project.id, `p${i}`, { browsers: 0 })
      await service.send(`/v1/persons/p${i}`, { method: 'DELETE' })
    }
    const { nextCursor } = (await service.send('/v1/deletion-jobs?limit=1')).json
    const persons = (await service.send('/v1/persons?limit=1')).json.nextCursor
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=x',
      'status=done',
      'externalId=',
      'externalId=%00',
      'cursor=x',
      `cursor=${persons}`,
      `cursor=${nextCursor}&status=pending`,
      `cursor=${nextCursor}x`,
    ]) {
      const answer = await service.send(`/v1/deletion-jobs?${query}`)
      expect([answer.status, answer.json.error.code], query).toEqual([400, 'invalid_request'])
    }
    expect((await service.send(`/v1/deletion-jobs?cursor=${nextCursor}`)).status).toBe(200)
  })

  test('another project sees none of them', async ({ erasure, project, service, db }) => {
    await record(erasure, project.id, 'ada', { browsers: 0 })
    const { id } = (await service.send('/v1/persons/ada', { method: 'DELETE' })).json.job
    await runAll(erasure.options)
    const { secretKey: key } = await newProject(db)
    expect((await service.send('/v1/deletion-jobs', { key })).json.jobs).toEqual([])
    expect((await service.send(`/v1/deletion-jobs/${id}`, { key })).status).toBe(404)
    const receipt = await service.send(`/v1/deletion-jobs/${id}/receipt`, { key })
    expect([receipt.status, receipt.json.error.code]).toEqual([404, 'deletion_job_not_found'])
  })
})

describe('GET /v1/deletion-jobs/:id', () => {
  test('follows the job from pending to completed; startedAt and completedAt stay from then on', async ({
    erasure,
    project,
    service,
  }) => {
    await record(erasure, project.id, 'ada')
    const { job } = (await service.send('/v1/persons/ada', { method: 'DELETE' })).json
    expect(job).toMatchObject({ status: 'pending', startedAt: null, completedAt: null })
    const read = async () =>
      (await service.call(getDeletionJob, { params: { id: job.id } })).body.job
    const seen: unknown[] = []
    const watching = {
      ...erasure.options,
      blobs: {
        ...erasure.blobs,
        async put(key: string, bytes: Uint8Array) {
          seen.push(await read())
          return erasure.blobs.put(key, bytes)
        },
      },
    }
    await runAll(watching)
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(seen[0]).toEqual({ ...job, status: 'running', startedAt: instant })
    const completed = await read()
    expect(completed).toEqual({
      ...(seen[0] as object),
      status: 'completed',
      completedAt: instant,
    })
    expect(Object.keys(completed)).toEqual(jobFields)
    expect((await service.send('/v1/persons/ada')).status).toBe(404)
    expect((await service.send('/v1/persons/ada', { method: 'DELETE' })).status).toBe(404)
  })
})

describe('GET /v1/deletion-jobs/:id/receipt', () => {
  test('404 receipt_not_found until the job is completed, then the receipt', async ({
    erasure,
    project,
    service,
  }) => {
    await record(erasure, project.id, 'ada')
    const { job } = (await service.send('/v1/persons/ada', { method: 'DELETE' })).json
    const early = await service.send(`/v1/deletion-jobs/${job.id}/receipt`)
    expect([early.status, early.json.error.code]).toEqual([404, 'receipt_not_found'])
    await runAll(erasure.options)
    const { body } = await service.call(getReceipt, { params: { id: job.id } })
    const keys = await service.send('/.well-known/jwks.json', { key: null })
    expect(keys.status).toBe(200)
    const { body: keySet } = await service.call(getPublicKeys, {})
    expect(await verifyReceipt(body.receipt, keySet)).toMatchObject({ jobId: job.id })
  })

  test('404 deletion_job_not_found for every unknown id', async ({ erasure, service }) => {
    for (const id of ['x', '00000000-0000-4000-8000-000000000000', '%00']) {
      const answer = await service.send(`/v1/deletion-jobs/${id}/receipt`)
      expect([answer.status, answer.json.error.code]).toEqual([404, 'deletion_job_not_found'])
    }
    expect(erasure.logged()).toBe('')
  })
})
