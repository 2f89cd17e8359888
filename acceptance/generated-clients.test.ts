import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import createFetchClient from 'openapi-fetch'
import { test as base, expect } from 'vitest'
import { type Lethe, startLethe } from './lethe.ts'

const root = join(import.meta.dirname, '..')
const description = join(root, 'openapi.json')
const run = promisify(execFile)

/** `folder`: of what is generated, within reach of the packages that it imports. */
const test = base.extend<{ lethe: Lethe; folder: string }>({
  lethe: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const { lethe, stop } = await startLethe()
      await use(lethe)
      await stop()
    },
    { scope: 'file' },
  ],
  folder: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const folder = await mkdtemp(join(import.meta.dirname, 'generated-'))
      const script = join(import.meta.dirname, 'generate-clients.ts')
      await run(process.execPath, [script, description, folder])
      await use(folder)
      await rm(folder, { recursive: true })
    },
    { scope: 'file' },
  ],
})

/** Throws with what the compiler says of the files and all that they import. */
async function compile(...files: string[]): Promise<void> {
  const options =
    '--ignoreConfig --noEmit --strict --lib esnext,dom --skipLibCheck --module nodenext --allowImportingTsExtensions'
  const tsc = join(root, 'node_modules/.bin/tsc')
  await run(tsc, [...options.split(' '), '--types', 'node', ...files], {
    cwd: root,
  }).catch(({ stdout }: { stdout: string }) => {
    throw new Error(stdout)
  })
}

test('the types of both compile where they are used', async ({ folder }) => {
  await writeFile(
    join(folder, 'driver.ts'),
    `import createClient from 'openapi-fetch'
    import type { components, paths } from './schema.d.ts'
    export async function drive(baseUrl: string): Promise<void> {
      const client = createClient<paths>({ baseUrl })
      const { data, error } = await client.GET('/v1/persons')
      const persons: components['schemas']['Person'][] = data?.persons ?? []
      const code: components['schemas']['Error']['error']['code'] | undefined = error?.error.code
      const deleted = await client.DELETE('/v1/persons/{externalId}', {
        params: { path: { externalId: persons[0]?.externalId ?? '' } },
      })
      const job: components['schemas']['DeletionJob'] | undefined = deleted.data?.job
      console.log(job?.status, code)
    }`,
  )
  await writeFile(
    join(folder, 'names.ts'),
    `import type { DeletionJob, Error, Person, Session } from './hey-api/types.gen.ts'
    export const names: [Person?, DeletionJob?, Session?, Error?] = []`,
  )
  // In one run of the compiler, most of which is its own start.
  await compile(join(folder, 'driver.ts'), join(folder, 'names.ts'))
})

test('a client of openapi-typescript and openapi-fetch drives the service', async ({ lethe }) => {
  // biome-ignore lint/suspicious/noExplicitAny: its types are generated, and compiled above
  const client: any = createFetchClient({
    baseUrl: lethe.url,
    headers: { authorization: `Bearer ${lethe.secretKey}` },
  })
  const externalId = 'a/b c+d@x.example'
  const path = { params: { path: { externalId } } }
  const created = await client.POST('/v1/persons', { body: { externalId, properties: { n: 1 } } })
  expect([created.response.status, created.data.person.externalId]).toEqual([201, externalId])
  const found = await client.GET('/v1/persons', { params: { query: { externalId } } })
  expect(found.data.persons).toHaveLength(1)
  const changed = await client.PATCH('/v1/persons/{externalId}', {
    ...path,
    body: { properties: { n: 2 } },
  })
  expect(changed.data.person.properties).toEqual({ n: 2 })
  expect((await client.GET('/v1/persons/{externalId}/sessions', path)).data.sessions).toEqual([])
  const { data } = await client.DELETE('/v1/persons/{externalId}', path)
  const job = { params: { path: { id: data.job.id } } }
  await expect
    .poll(async () => (await client.GET('/v1/deletion-jobs/{id}', job)).data.job.status)
    .toBe('completed')
  const gone = await client.GET('/v1/persons/{externalId}', path)
  expect([gone.response.status, gone.error.error.code]).toEqual([404, 'person_not_found'])
  const started = await client.POST('/ingest/v1/start', {
    params: { query: { key: lethe.publicKey } },
    body: {},
  })
  expect(started.data.next).toBe('continue')
})

test('a client of hey-api drives the service', async ({ lethe, folder }) => {
  const sdk = await import(/* @vite-ignore */ join(folder, 'hey-api/sdk.gen.ts'))
  const { client } = await import(/* @vite-ignore */ join(folder, 'hey-api/client.gen.ts'))
  client.setConfig({ baseUrl: lethe.url, auth: () => lethe.secretKey })

  const externalId = 'grace+1@x.example'
  const created = await sdk.createPerson({ body: { externalId } })
  expect([created.response.status, created.data.person.externalId]).toEqual([201, externalId])
  expect((await sdk.listPersons({ query: { externalId } })).data.persons).toHaveLength(1)
  const many = await sdk.requestDeletions({ body: { externalIds: [externalId, 'nobody'] } })
  expect(many.data.results).toMatchObject([
    { externalId, job: { status: 'pending' } },
    { externalId: 'nobody', error: { code: 'person_not_found' } },
  ])
  const path = { id: many.data.results[0].job.id }
  await expect
    .poll(async () => (await sdk.getDeletionJob({ path })).data.job.status)
    .toBe('completed')
  expect((await sdk.getReceipt({ path })).data.receipt).toEqual(expect.any(String))
  const refused = await sdk.getPerson({ path: { externalId } })
  expect(refused.error.error.code).toBe('person_not_found')
})
