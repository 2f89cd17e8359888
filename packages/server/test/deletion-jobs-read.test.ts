import { createPerson } from '@lethe/contract/person.ts'
import { expect } from 'vitest'
import { newProject, test } from './fixtures.ts'

test('404 deletion_job_not_found: unknown, malformed and of another project, byte for byte', async ({
  service,
  db,
}) => {
  const other = await newProject(db)
  await service.send('/v1/persons', {
    method: 'POST',
    key: other.secretKey,
    body: { externalId: 'theirs' },
  })
  const theirs = await service.send('/v1/persons/theirs', {
    method: 'DELETE',
    key: other.secretKey,
  })
  const { id } = theirs.json.job
  const paths = [
    id,
    id.toUpperCase(),
    '00000000-0000-4000-8000-000000000000',
    'x',
    '%00',
    '1',
    "'",
    '💩',
    'x'.repeat(2_000),
  ]
  const answers = await Promise.all(
    paths.map((one) => service.send(`/v1/deletion-jobs/${encodeURIComponent(one)}`)),
  )
  const bodies = answers.map(
    ({ status, text }) => `${status} ${text.replace(/"requestId":"[^"]+"/, '')}`,
  )
  expect(new Set(bodies)).toEqual(new Set([bodies[0]]))
  expect([answers[0]?.status, answers[0]?.json.error.code]).toEqual([404, 'deletion_job_not_found'])
})

test('200: the job, as DELETE returned it', async ({ service }) => {
  await service.call(createPerson, { body: { externalId: 'a/b' } })
  const { job } = (await service.send('/v1/persons/a%2Fb', { method: 'DELETE' })).json
  const read = await service.send(`/v1/deletion-jobs/${job.id}`)
  expect([read.status, Object.keys(read.json)]).toEqual([200, ['job']])
  expect(Object.keys(read.json.job)).toEqual(Object.keys(job))
  expect(read.json.job.externalId).toBe('a/b')
})
