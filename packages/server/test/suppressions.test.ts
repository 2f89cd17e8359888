import { getProjectSummary, updateProject } from '@lethe/contract/dashboard-projects.ts'
import { expect } from 'vitest'
import { type Dashboard, eraseAll, erasureOptions, test } from './dashboard-fixtures.ts'

async function identify({ url, project }: Dashboard, browserId: string, userId: string) {
  const answer = await fetch(`${url}/ingest/v1/identify?key=${project.publicKey}`, {
    method: 'POST',
    body: JSON.stringify({ browserId, userId }),
  })
  return { status: answer.status, body: await answer.text() }
}

/** Records somebody and erases them. */
async function erase(dashboard: Dashboard, recordings: Parameters<typeof erasureOptions>[0]) {
  await dashboard.record('ada')
  await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
  await eraseAll(await erasureOptions(recordings))
  expect((await dashboard.send('/v1/persons/ada')).status).toBe(404)
}

const exists = async (dashboard: Dashboard, externalId: string) =>
  (await dashboard.send(`/v1/persons/${externalId}`)).status === 200

test('an erased person comes back by identify if suppression is off', async ({
  dashboard,
  recordings,
  db,
}) => {
  await erase(dashboard, recordings)
  expect(await db.sql`select from suppressions`).toEqual([])
  const { browserId } = await dashboard.record()
  await identify(dashboard, browserId, 'ada')
  expect(await exists(dashboard, 'ada')).toBe(true)
})

test('if suppression is on, identify leaves the browser anonymous, and the response does not show it', async ({
  dashboard,
  recordings,
  db,
}) => {
  const owner = await dashboard.member('owner')
  const params = { projectId: dashboard.projectId }
  const set = (suppressesErased: boolean) =>
    owner.call(updateProject, { params, body: { suppressesErased } })
  expect((await set(true)).body.project.suppressesErased).toBe(true)
  await erase(dashboard, recordings)
  expect((await owner.call(getProjectSummary, { params })).body.suppressedPeople).toBe(1)

  const erased = await dashboard.record()
  const somebody = await dashboard.record()
  const answers = [
    await identify(dashboard, erased.browserId, 'ada'),
    await identify(dashboard, somebody.browserId, 'grace'),
  ]
  expect(answers[0]).toEqual(answers[1])
  expect([await exists(dashboard, 'ada'), await exists(dashboard, 'grace')]).toEqual([false, true])
  expect(await db.sql`select from person_browsers where browser_id = ${erased.browserId}`).toEqual(
    [],
  )
  // Nothing in the list tells whom it is about.
  const [row] = await db.sql<{ row: string }>`
    select string_agg(to_jsonb(s)::text, '') as row from suppressions s`
  expect(row?.row).not.toMatch(/\bada\b/)

  // What the backend says counts: a person that it creates can be identified again.
  await dashboard.send('/v1/persons', { method: 'POST', body: { externalId: 'ada' } })
  await identify(dashboard, erased.browserId, 'ada')
  expect(
    (await db.sql`select from person_browsers where browser_id = ${erased.browserId}`).length,
  ).toBe(1)

  // Or it lifts it.
  await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
  await eraseAll(await erasureOptions(recordings))
  const lift = (externalId: string) =>
    dashboard.send(`/v1/suppressions?externalId=${externalId}`, { method: 'DELETE' })
  expect((await lift('nobody')).json).toEqual({ lifted: false })
  expect((await lift('ada')).json).toEqual({ lifted: true })
  expect((await lift('ada')).json).toEqual({ lifted: false })
  const again = await dashboard.record()
  await identify(dashboard, again.browserId, 'ada')
  expect(await exists(dashboard, 'ada')).toBe(true)

  // Switched off, the list and its key are forgotten.
  await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
  await eraseAll(await erasureOptions(recordings))
  expect((await db.sql`select from suppressions`).length).toBe(1)
  await set(false)
  expect(await db.sql`select from suppressions`).toEqual([])
  expect(await db.sql`select from project_secrets where purpose = 'suppression'`).toEqual([])
})

test('an identify in flight while the erasure ends brings nobody back', async ({
  dashboard,
  recordings,
  db,
}) => {
  await db.sql`update projects set suppresses_erased = true where id = ${dashboard.project.id}`
  await dashboard.record('ada')
  await dashboard.send('/v1/persons/ada', { method: 'DELETE' })
  const browsers = await Promise.all(Array.from({ length: 8 }, () => dashboard.record()))
  const options = await erasureOptions(recordings)
  await Promise.all([
    eraseAll(options),
    ...browsers.map(async ({ browserId }) => {
      for (let i = 0; i < 5; i++) await identify(dashboard, browserId, 'ada')
    }),
  ])
  await eraseAll(options)
  expect(await exists(dashboard, 'ada')).toBe(false)
})
