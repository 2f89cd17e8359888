import { pathOf } from '@lethe/contract/dashboard-client.ts'
import {
  exportDeletions,
  getDeletion,
  getReceipt,
  listDeletions,
  previewDeletion,
  requestDeletions,
} from '@lethe/contract/dashboard-deletions.ts'
import { getProjectSummary } from '@lethe/contract/dashboard-projects.ts'
import { getSystem } from '@lethe/contract/dashboard-system.ts'
import { describe, expect } from 'vitest'
import { BlobFault } from '../src/blobs/blobs.ts'
import { type Dashboard, eraseAll, erasureOptions, refusalOf, test } from './dashboard-fixtures.ts'
import { overBlobs } from './erasure-faults.ts'

async function put(dashboard: Dashboard, externalId: string) {
  await dashboard.send('/v1/persons', { method: 'POST', body: { externalId } })
  return dashboard.personId(externalId)
}

describe('the dialog', () => {
  test('counts what will go: recordings, browsers, and those from before sign-in', async ({
    dashboard,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    const { browserId } = await dashboard.record('ada')
    await dashboard.record('ada')
    await dashboard.record('bob')
    await dashboard.record()
    // A second session of Ada's first browser, after she was known.
    await db.sql`
      insert into sessions (project_id, browser_id, started_at)
      values (${dashboard.project.id}, ${browserId}, app_now() + interval '1 minute')`
    const [ada, bob] = [await dashboard.personId('ada'), await dashboard.personId('bob')]
    const params = { projectId: dashboard.projectId }
    const preview = async (personIds: string[]) =>
      (await owner.call(previewDeletion, { params, body: { personIds } })).body
    expect(await preview([ada])).toMatchObject({
      persons: 1,
      browsers: 2,
      sessions: 3,
      sessionsBeforeIdentification: 2,
    })
    expect(await preview([ada, bob, '12', 'nobody'])).toMatchObject({
      persons: 2,
      browsers: 3,
      sessions: 4,
    })
    expect((await preview([ada])).bytes).toBeGreaterThan(0)
  })

  test('works as DELETE of the server API: one job, the same when repeated, and another keepRecordings refused', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const personId = await put(dashboard, 'ada')
    const params = { projectId: dashboard.projectId }
    const ask = async (keepRecordings: boolean, personIds = [personId]) =>
      (await owner.call(requestDeletions, { params, body: { personIds, keepRecordings } })).body
        .results
    const [first] = await ask(false)
    expect(first).toMatchObject({
      personId,
      job: { externalId: 'ada', status: 'pending', keepRecordings: false, startedAt: null },
    })
    expect(await ask(false)).toEqual([first])
    expect(await ask(true)).toMatchObject([
      { personId, error: { code: 'deletion_in_progress', message: expect.any(String) } },
    ])
    const api = await dashboard.send('/v1/persons/ada?keepRecordings=false', { method: 'DELETE' })
    expect(api.json.job).toEqual((first as { job: object }).job)
    const blocked = await dashboard.send('/v1/persons/ada', {
      method: 'PATCH',
      body: { properties: {} },
    })
    expect(blocked.json.error.code).toBe('person_being_deleted')
  })

  test('several at once have a result each, in order, whatever becomes of the others', async ({
    dashboard,
  }) => {
    const owner = await dashboard.member('owner')
    const [ada, bob] = [await put(dashboard, 'ada'), await put(dashboard, 'bob')]
    const { results } = (
      await owner.call(requestDeletions, {
        params: { projectId: dashboard.projectId },
        body: { personIds: [bob, '77', 'x', ada, bob], keepRecordings: true },
      })
    ).body
    expect(results).toMatchObject([
      { personId: bob, job: { externalId: 'bob' } },
      { personId: '77', error: { code: 'person_not_found' } },
      { personId: 'x', error: { code: 'person_not_found' } },
      { personId: ada, job: { externalId: 'ada' } },
    ])
  })
})

describe('the list of deletions', () => {
  test('has every job with who asked and what was removed, newest first, filtered and paged', async ({
    dashboard,
    recordings,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    await dashboard.record('ada')
    const ada = await dashboard.personId('ada')
    await owner.call(requestDeletions, {
      params,
      body: { personIds: [ada], keepRecordings: false },
    })
    await eraseAll(await erasureOptions(recordings))
    await put(dashboard, 'bob')
    await dashboard.send('/v1/persons/bob?keepRecordings=true', { method: 'DELETE' })

    const list = async (query: object = {}) =>
      (await owner.call(listDeletions, { params, query })).body
    const { deletions } = await list()
    expect(deletions).toMatchObject([
      {
        job: { externalId: 'bob', status: 'pending', keepRecordings: true },
        requestedBy: { kind: 'key', name: 'secret' },
        personId: await dashboard.personId('bob'),
      },
      {
        job: { externalId: 'ada', status: 'completed' },
        requestedBy: { kind: 'member', name: 'The owner' },
        personId: null,
        attempts: 1,
        removed: { keys: 1, sessions: 1, chunks: 1, blobs: 1, browsers: 1 },
        hasReceipt: true,
        purgedAt: null,
      },
    ])
    const idsOf = async (query: object) =>
      (await list(query)).deletions.map((one) => one.job.externalId)
    expect(await idsOf({ status: 'open' })).toEqual(['bob'])
    expect(await idsOf({ status: 'completed' })).toEqual(['ada'])
    expect(await idsOf({ status: 'failed' })).toEqual([])
    expect(await idsOf({ externalId: 'ada' })).toEqual(['ada'])
    expect(await idsOf({ keepRecordings: true })).toEqual(['bob'])
    expect(await idsOf({ from: '2020-01-01', to: '2020-01-02' })).toEqual([])
    expect(await idsOf({ from: '2020-01-01' })).toEqual(['bob', 'ada'])
    expect(await refusalOf(list({ from: 'yesterday' }))).toMatchObject({ status: 400 })
    const first = await list({ limit: 1 })
    expect(first.deletions).toHaveLength(1)
    const next = await list({ limit: 1, cursor: first.nextCursor })
    expect(next.deletions[0]?.job.externalId).toBe('ada')
    expect(next.nextCursor).toBeNull()
  })

  test('the timeline of a job that fails shows each attempt, and a new request is a new job', async ({
    dashboard,
    recordings,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    await dashboard.record('ada')
    const personIds = [await dashboard.personId('ada')]
    const ask = async () => {
      const body = { personIds, keepRecordings: false }
      const [result] = (await owner.call(requestDeletions, { params, body })).body.results
      return (result as { job: { id: string } }).job.id
    }
    const jobId = await ask()
    const failing = await erasureOptions(recordings, {
      blobs: overBlobs(recordings.blobs, async () => {
        throw new BlobFault('access_denied', 'The store refuses.')
      }),
    })
    await eraseAll(failing)
    const path = { ...params, jobId }
    const { deletion, attempts } = (await owner.call(getDeletion, { params: path })).body
    expect(attempts.map(({ number, outcome }) => [number, outcome])).toEqual(
      [1, 2, 3, 4, 5].map((number) => [number, 'failed']),
    )
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({
        step: expect.any(String),
        errorCode: expect.stringMatching(/access_denied/),
        endedAt: expect.any(String),
      })
    }
    // What was destroyed before it failed is told with the attempt that did it.
    expect(attempts.map(({ removed }) => [removed.keys, removed.blobs])).toEqual([
      [1, 0],
      ...[2, 3, 4, 5].map(() => [0, 0]),
    ])
    expect(deletion).toMatchObject({
      job: { status: 'failed', completedAt: null },
      removed: { keys: 1, sessions: 0 },
      attempts: 5,
      nextAttemptAt: null,
      failedAt: attempts[4]?.endedAt,
      personId: personIds[0],
    })
    const summary = (await owner.call(getProjectSummary, { params })).body
    expect(summary).toMatchObject({ deletionsInProgress: 0, deletionsFailed: 1 })
    expect(await refusalOf(owner.call(getReceipt, { params: path }))).toEqual({
      status: 404,
      code: 'receipt_not_found',
    })
    const { json } = await dashboard.send(`/v1/deletion-jobs/${jobId}/receipt`)
    expect(json.error.message).toContain('because the job failed')

    const again = await ask()
    expect(again).not.toBe(jobId)
    const between = (await owner.call(getProjectSummary, { params })).body
    expect(between).toMatchObject({ deletionsInProgress: 1, deletionsFailed: 0 })
    await eraseAll(await erasureOptions(recordings))
    const done = (await owner.call(getDeletion, { params: { ...params, jobId: again } })).body
    expect(done.deletion.job.status).toBe('completed')
    const after = (await owner.call(getProjectSummary, { params })).body
    expect(after).toMatchObject({ deletionsInProgress: 0, deletionsFailed: 0, hasPersons: false })
  })

  test('a receipt is given out and checked; one that was changed is not valid', async ({
    dashboard,
    recordings,
    db,
  }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const personIds = [await put(dashboard, 'ada')]
    await owner.call(requestDeletions, { params, body: { personIds, keepRecordings: false } })
    await eraseAll(await erasureOptions(recordings))
    const [deletion] = (await owner.call(listDeletions, { params })).body.deletions
    const path = { ...params, jobId: deletion!.job.id }
    const receipt = (await owner.call(getReceipt, { params: path })).body
    expect(receipt).toMatchObject({ isValid: true, claims: { jobId: path.jobId } })
    const api = await dashboard.send(`/v1/deletion-jobs/${path.jobId}/receipt`)
    expect(api.json.receipt).toBe(receipt.receipt)
    await db.sql`
      update receipts set jws = overlay(jws placing 'AAAA' from 120 for 4)
      where job_id = ${path.jobId}`
    const changed = (await owner.call(getReceipt, { params: path })).body
    expect(changed).toMatchObject({ isValid: false, claims: {} })
  })

  test('the CSV has every job, and no cell of it is a formula', async ({ dashboard }) => {
    const viewer = await dashboard.member('viewer')
    const params = { projectId: dashboard.projectId }
    const formulas = ['=1+1', '+a', '-a', '@a', ' =1+1', '\n=1+1', '\t-1', '\u00a0+1', '\u200b@a']
    const wide = ['＝1+1', '＋a', '－a', '＠a', '\u3000＝1', '﹦1']
    const within = [
      'x;=cmd',
      'x; =cmd',
      'x;;＝cmd',
      'x\t=cmd',
      'x\r\n=cmd',
      'x|=cmd',
      'x";=cmd',
      'x;"=1;x',
    ]
    const plain = ['a"b', 'a,b', 'a\nb', 'a=b', 'a - b', 'plain']
    const awkward = [...formulas, ...wide, ...within, ...plain]
    for (const one of awkward) {
      await put(dashboard, one)
      await dashboard.send(`/v1/persons/${encodeURIComponent(one)}`, { method: 'DELETE' })
    }
    const answer = await viewer.fetch(pathOf(exportDeletions, { params }))
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/)
    expect(answer.headers.get('content-disposition')).toMatch(/^attachment; filename="deletions-/)
    const text = await answer.text()
    const cells = cellsOf(text)
    expect(cells[0]?.slice(0, 3)).toEqual(['job_id', 'external_id', 'status'])
    const externalIds = cells.slice(1).map((row) => row[1] as string)
    expect(externalIds.map((one) => one.replaceAll("'", ''))).toEqual([...awkward].reverse())
    expect(externalIds.slice(0, plain.length)).toEqual([...plain].reverse())
    // Whatever a spreadsheet takes for the end of a cell, none that begins there is a formula.
    for (const cell of text.split(/[,;\t\r\n|]/)) {
      expect(cell.replace(/["\s\p{Z}\p{C}]/gu, '')).not.toMatch(/^[=+\-@＝＋－＠﹦]/)
    }
    expect(text.replaceAll(/"(?:[^"]|"")*"/g, '').replaceAll(/[,\r\n]/g, '')).toBe('')
    const [, , , , requestedBy, requestedById] = cells[1] ?? []
    expect(requestedBy).toBe('key: secret')
    expect(requestedById).toMatch(/^[0-9a-f-]{36}$/)
    const none = await viewer.fetch(
      pathOf(exportDeletions, { params, query: { status: 'failed' } }),
    )
    expect(cellsOf(await none.text())).toHaveLength(1)
  })

  test('the CSV of more jobs than one part holds has them all', async ({ dashboard, db }) => {
    const viewer = await dashboard.member('viewer')
    await db.sql`
      insert into deletion_jobs
        (project_id, external_id, keep_recordings, status, attempts, created_at, started_at)
      select ${dashboard.project.id}, 'p' || i, false, 'failed', 5,
        app_now() - (i / 10) * interval '1 second', app_now()
      from generate_series(1, 1203) i`
    const params = { projectId: dashboard.projectId }
    const text = await (await viewer.fetch(pathOf(exportDeletions, { params }))).text()
    const externalIds = cellsOf(text)
      .slice(1)
      .map((row) => row[1])
    expect(new Set(externalIds).size).toBe(1203)
    expect(externalIds).toHaveLength(1203)
  })
})

test('the system page tells of the database, the blob store, workers and open jobs', async ({
  dashboard,
  db,
}) => {
  const owner = await dashboard.member('owner')
  await put(dashboard, 'ada')
  const asked = await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
  await db.sql`update worker_seen set at = null`
  const before = (await owner.call(getSystem, {})).body
  expect(before).toMatchObject({
    database: { version: '18', isEmbedded: true },
    blobs: { kind: 'folder', state: 'ok', errorCode: null },
    worker: { state: 'failed', lastSeenAt: null },
    deletions: { pending: 1, running: 0, oldestPendingJobId: asked.json.job.id },
  })
  expect(before.database.bytes).toBeGreaterThan(1_000_000)
  await db.sql`update worker_seen set at = app_now()`
  expect((await owner.call(getSystem, {})).body.worker.state).toBe('ok')
})

/** The cells of a CSV, as RFC 4180 writes them. */
function cellsOf(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain = '', end] of text.matchAll(
    /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/g,
  )) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === '\r\n') {
      rows.push(row)
      row = []
    }
  }
  return rows
}
