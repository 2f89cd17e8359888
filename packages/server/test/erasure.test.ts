import { expect } from 'vitest'
import { runNextAttempt } from '../src/erasure/attempt.ts'
import { findDeletionJob, findDeletionJobDetails } from '../src/erasure/store.ts'
import { fingerprint, nothing, record, remains, requestErasure, test } from './erasure-fixtures.ts'
import { newProject } from './fixtures.ts'

test('a deletion with recordings leaves nothing of the person, and everybody else as they were', async ({
  erasure,
  project,
  db,
}) => {
  const other = await newProject(db)
  const ada = await record(erasure, project.id, 'ada', { browsers: 3 })
  const bystander = await record(erasure, project.id, 'bystander')
  const namesake = await record(erasure, other.id, 'ada')
  const before = [
    await fingerprint(erasure, project.id, bystander),
    await fingerprint(erasure, other.id, namesake),
  ]
  const { id } = await requestErasure(erasure, project.id, 'ada')

  expect(await runNextAttempt(erasure.options)).toBe('completed')

  expect(await remains(erasure, project.id, ada)).toEqual(nothing)
  expect(await findDeletionJob(db.sql, project.id, id)).toMatchObject({
    status: 'completed',
    completedAt: expect.any(String),
  })
  expect(await findDeletionJobDetails(db.sql, project.id, id)).toMatchObject({
    removed: { sessions: 6, chunks: 12, blobs: 12, bytes: 120, browsers: 3 },
    attempts: [{ number: 1, outcome: 'completed', errorCode: null }],
  })
  expect([
    await fingerprint(erasure, project.id, bystander),
    await fingerprint(erasure, other.id, namesake),
  ]).toEqual(before)
})
