import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { access, cp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect } from 'vitest'
import { writePerson } from '../src/persons/store.ts'
import type { DbAddress } from '../src/sql.ts'
import { sendRaw, test } from './fixtures.ts'
import { greeting, newEnvironment, resultOf, runLethe, startLethe } from './lethe-process.ts'
import { isDeep } from './proof/deep.ts'

/** The same for all that share a database: its ledger of erasures lies in the data folder. */
const masterKey = `k1:${randomBytes(32).toString('base64')}`
const shared = mkdtempSync(join(tmpdir(), 'lethe-erasure-command-'))
afterAll(() => rmSync(shared, { recursive: true }))

const environment = (address?: DbAddress) =>
  newEnvironment(address, {
    MASTER_KEY: masterKey,
    ...(address && { DATA_DIR: join(shared, 'data') }),
  })

async function untilStatus(url: string, key: string, id: string, status: string) {
  for (;;) {
    const answer = await sendRaw(url, `/v1/deletion-jobs/${id}`, key, {})
    if (answer.json.job.status === status) return answer.json.job
    await sleep(20)
  }
}

describe('lethe erase', () => {
  test('--wait works on the job itself where no service runs, and ends with 0', async ({
    db,
    address,
    project,
  }) => {
    const env = await environment(address)
    await writePerson(db.sql, project.id, 'a b/ü', { name: 'Ada' }, true)
    const words = ['erase', 'a b/ü', '--project', String(project.id), '--wait', '--json']
    const erased = await runLethe(words, env)
    expect(erased).toMatchObject({ code: 0, err: '' })
    const { job } = JSON.parse(erased.out)
    expect(job).toMatchObject({ externalId: 'a b/ü', status: 'completed', keepRecordings: false })

    const shown = await runLethe(
      ['jobs', 'show', job.id, '--project', String(project.id), '--json'],
      env,
    )
    expect(JSON.parse(shown.out)).toMatchObject({
      job,
      details: { requestedBy: 'command', attempts: [{ number: 1, outcome: 'completed' }] },
    })
    const listed = await runLethe(['jobs', 'list', '--project', String(project.id), '--json'], env)
    expect(JSON.parse(listed.out)).toEqual({ jobs: [job] })
    const table = await runLethe(['jobs', 'list', '--project', String(project.id)], env)
    expect(table.out).toMatch(new RegExp(`${job.id} +completed +a b/ü`))
  })

  test('shows an id that is a command to the terminal as its characters', async ({
    db,
    address,
    project,
  }) => {
    const externalId = '\u001b]0;owned\u0007\u009b2J\nforged\u202e'
    await db.sql`
      insert into deletion_jobs
        (project_id, external_id, keep_recordings, status, attempts, started_at)
      values (${project.id}, ${externalId}, false, 'failed', 5, app_now())`
    const env = await environment(address)
    const { out } = await runLethe(['jobs', 'list', '--project', String(project.id)], env)
    expect(out).toContain('\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{a}forged\\u{202e}')
    expect(out.trimEnd().split('\n')).toHaveLength(2)
  })

  test('without --wait only requests; --keep-recordings is part of it', async ({
    db,
    address,
    project,
  }) => {
    const env = await environment(address)
    await writePerson(db.sql, project.id, 'ada', {}, true)
    const words = ['erase', 'ada', '--project', String(project.id), '--keep-recordings', '--json']
    const { code, out } = await runLethe(words, env)
    expect(code).toBe(0)
    expect(JSON.parse(out).job).toMatchObject({ status: 'pending', keepRecordings: true })
  })

  test('ends with 3 when the job failed', async ({ db, address, project }) => {
    const env = {
      ...(await environment(address)),
      ERASURE_RETRY_DELAYS: '0,0,0,0',
      BLOBS_URL: 's3://nowhere',
      S3_ENDPOINT: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'a',
      AWS_SECRET_ACCESS_KEY: 'b',
      AWS_REGION: 'us-east-1',
    }
    await writePerson(db.sql, project.id, 'eve', {}, true)
    const words = ['erase', 'eve', '--project', String(project.id), '--wait', '--json']
    const { code, out } = await runLethe(words, env)
    expect(code).toBe(3)
    expect(JSON.parse(out).job).toMatchObject({ externalId: 'eve', status: 'failed' })
  })

  test('ends with 2 for a person, a project or a job that is not there', async ({
    address,
    project,
  }) => {
    const env = await environment(address)
    const notKeys = join(env.TMPDIR, 'not-keys.json')
    await writeFile(notKeys, '{"receipt":"a.b.c"}')
    for (const words of [
      ['erase', 'nobody', '--project', String(project.id)],
      ['erase', '--project', String(project.id)],
      ['jobs', 'show', 'x', '--project', String(project.id)],
      ['receipt', 'verify', join(env.DATA_DIR, 'missing'), '--jwks', 'missing'],
      ['receipt', 'verify', notKeys, '--jwks', notKeys],
    ]) {
      const { code, out } = await runLethe(words, env)
      expect([code, out], words.join(' ')).toEqual([2, ''])
    }
  })
})

test('serve --no-worker leaves the job to a separate worker, and both stop at a signal', async ({
  db,
  address,
  project,
}) => {
  const env = await environment(address)
  const service = await startLethe(['serve', '--no-worker'], env, greeting)
  const url = service.found
  await writePerson(db.sql, project.id, 'ada', { name: 'Ada' }, true)
  const deleted = await sendRaw(url, '/v1/persons/ada', project.secretKey, { method: 'DELETE' })
  const { id } = deleted.json.job
  // Longer than a worker in it would need to find the job by looking.
  await sleep(1_500)
  const pending = await sendRaw(url, `/v1/deletion-jobs/${id}`, project.secretKey, {})
  expect(pending.json.job.status).toBe('pending')

  const worker = await startLethe(['worker'], env, /works on deletion jobs/)
  await untilStatus(url, project.secretKey, id, 'completed')
  expect(await worker.stop()).toBe(0)
  expect(await service.stop()).toBe(0)
  expect(worker.output() + service.output()).not.toMatch(/\bada\b/)
})

test('lethe receipt verify checks a receipt offline, and refuses what is none', async ({
  db,
  address,
  project,
}) => {
  const env = await environment(address)
  const service = await startLethe(['serve'], env, greeting)
  const url = service.found
  const paths: string[] = []
  for (const externalId of ['ada', 'eve']) {
    await writePerson(db.sql, project.id, externalId, {}, true)
    const deleted = await sendRaw(url, `/v1/persons/${externalId}`, project.secretKey, {
      method: 'DELETE',
    })
    const { id } = deleted.json.job
    await untilStatus(url, project.secretKey, id, 'completed')
    const receipt = await sendRaw(url, `/v1/deletion-jobs/${id}/receipt`, project.secretKey, {})
    paths.push(join(env.DATA_DIR, `${externalId}.json`))
    await writeFile(paths.at(-1)!, receipt.text)
  }
  const jwks = join(env.DATA_DIR, 'jwks.json')
  await writeFile(jwks, (await sendRaw(url, '/.well-known/jwks.json', null, {})).text)
  await service.stop()

  // Offline: neither a database nor a service can be reached.
  const offline = { ...env, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing' }
  const [ada, eve] = paths as [string, string]
  const verify = (file: string, ...words: string[]) =>
    runLethe(['receipt', 'verify', file, '--jwks', jwks, ...words], offline)

  const genuine = await verify(eve, '--previous', ada, '--external-id', 'eve', '--json')
  expect(genuine).toMatchObject({ code: 0, err: '' })
  expect(JSON.parse(genuine.out).statement).toMatchObject({ number: 2, projectId: project.id })
  for (const words of [
    ['--external-id', 'ada'],
    ['--previous', eve],
  ]) {
    expect(await verify(eve, ...words)).toMatchObject({ code: 1, out: '' })
  }
  const { receipt } = JSON.parse(await readFile(eve, 'utf8'))
  const at = receipt.indexOf('.') + 20
  const changed = join(env.DATA_DIR, 'changed')
  await writeFile(
    changed,
    receipt.slice(0, at) + (receipt[at] === 'A' ? 'B' : 'A') + receipt.slice(at + 1),
  )
  expect(await verify(changed)).toMatchObject({ code: 1, err: expect.stringContaining('changed') })
  // With the installation at hand no key set is needed.
  expect(await runLethe(['receipt', 'verify', eve], env)).toMatchObject({ code: 0 })
  // And without one none is made.
  const elsewhere = { ...env, DATABASE_URL: '', DATA_DIR: join(env.DATA_DIR, 'elsewhere') }
  expect(await runLethe(['receipt', 'verify', eve], elsewhere)).toMatchObject({
    code: 2,
    err: expect.stringContaining('--jwks'),
  })
  await expect(access(elsewhere.DATA_DIR)).rejects.toThrow('ENOENT')
})

/** In a deep run alone: backup.test.ts restores a built-in database too, and erasure-restore.test.ts a dump. */
if (isDeep) {
  test('a service over a restored backup never serves whom it had erased', async () => {
    const env = await environment()
    const first = await startLethe(['serve'], env, /Try it/)
    const [, key = ''] = /secret key +(sk_\w+)/.exec(first.output()) ?? []
    const [, url = ''] = greeting.exec(first.output()) ?? []
    for (const externalId of ['ada', 'bob']) {
      await sendRaw(url, '/v1/persons', key, { method: 'POST', body: { externalId } })
    }
    await first.stop()
    const database = join(env.DATA_DIR, 'postgres')
    const copy = join(env.DATA_DIR, '..', 'backup')
    await cp(database, copy, { recursive: true, preserveTimestamps: true })

    const second = await startLethe(['serve'], env, greeting)
    const deleted = await sendRaw(second.found, '/v1/persons/ada', key, { method: 'DELETE' })
    const { id } = deleted.json.job
    await untilStatus(second.found, key, id, 'completed')
    await second.stop()

    await restore(database, copy)
    const third = await startLethe(['serve'], env, greeting)
    // The very first request there is.
    expect((await sendRaw(third.found, '/v1/persons/ada', key, {})).status).toBe(404)
    expect((await sendRaw(third.found, '/v1/persons/bob', key, {})).status).toBe(200)
    expect((await sendRaw(third.found, `/v1/deletion-jobs/${id}`, key, {})).json.job).toMatchObject(
      {
        id,
        externalId: 'ada',
        status: 'completed',
      },
    )
    expect(await third.stop()).toBe(0)
    const again = await runLethe(['reapply', '--json'], env)
    expect(resultOf(again)).toEqual({
      entries: 1,
      persons: 0,
      browsers: 0,
      refused: 0,
      missing: 0,
    })
  })
}

/** Puts a copy of a database's folder in its place, with the owner the folder had. */
async function restore(folder: string, copy: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    execFile(
      'sh',
      [
        '-c',
        'owner=$(stat -c %u:%g "$1"); rm -rf "$1"; cp -a "$2" "$1"; chown -R "$owner" "$1"',
        '-',
        folder,
        copy,
      ],
      (error) => (error ? reject(error) : resolve()),
    )
  })
}
