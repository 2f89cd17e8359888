import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, test as base, describe, expect, inject, onTestFinished } from 'vitest'
import { isProven } from '../src/projects/identity.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'
import { blockOf, blocksOf, pages, readPage, root } from './documents.ts'
import { sendRaw, type TestProject, test } from './fixtures.ts'
import { greeting, newEnvironment, startLethe } from './lethe-process.ts'

/* The pages of docs/: their links lead somewhere, their tests exist, and their programs run. */

const run = promisify(execFile)
const limit = { timeout: 120_000 }

/** Of the database of this file, whose ledger of erasures lies in the data folder. */
const shared = mkdtempSync(join(tmpdir(), 'lethe-docs-data-'))
afterAll(() => rmSync(shared, { recursive: true }))
const ofDatabase = {
  MASTER_KEY: `k1:${randomBytes(32).toString('base64')}`,
  DATA_DIR: join(shared, 'data'),
}

const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-docs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', ...pages]

describe('documents', () => {
  base.for(documents)('%s: each link leads to a file', (path) => {
    for (const [, target = ''] of readPage(path).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target)) continue
      expect(existsSync(join(root, dirname(path), target)), target).toBe(true)
    }
  })

  base.for([...documents, 'DECISIONS.md'])('%s: each test it names exists', (path) => {
    for (const [, folder = '', name = ''] of readPage(path).matchAll(
      /`(acceptance\/)?([\w-]+\.test\.ts)`/g,
    )) {
      const places = folder
        ? ['acceptance']
        : [
            'packages/server/test',
            'packages/sdk-browser/test',
            'packages/dashboard/test',
            'acceptance',
          ]
      const deep = ['packages/server/test/proof']
      expect(
        [...places, ...deep].some((place) => existsSync(join(root, place, name))),
        name,
      ).toBe(true)
    }
  })
})

base.for(['ARCHITECTURE.md', 'CONTRIBUTING.md'])('%s: each file it names exists', (path) => {
  const named = [...readPage(path).matchAll(/`((?:[\w-]+\/)+[\w-]+\.(?:ts|sql))`/g)]
  expect(named.length).toBeGreaterThan(5)
  for (const [, name = ''] of named) {
    const places = ['', 'packages/server', 'packages/server/src', 'packages/server/test']
    expect(
      places.some((place) => existsSync(join(root, place, name))),
      name,
    ).toBe(true)
  }
})

describe('integrate.md', () => {
  const page = 'docs/integrate.md'

  test(
    'the backends in curl, Node and Python run as they stand there',
    limit,
    async ({ address, project }) => {
      const { env, url } = await serving(address, project)
      const folder = newFolder()
      const programs: [command: string, flags: string[], mark: string, file: string][] = [
        ['bash', ['-euo', 'pipefail'], 'sh', 'backend.sh'],
        [process.execPath, [], 'js', 'backend.mjs'],
        ['python3', [], 'python', 'backend.py'],
      ]
      for (const [command, flags, mark, file] of programs) {
        writeFileSync(join(folder, file), blockOf(page, mark))
        await run(command, [...flags, file], { cwd: folder, env, timeout: 60_000 })
      }
      for (const externalId of ['user-1', 'user-2', 'user-3']) {
        const path = `/v1/deletion-jobs?externalId=${externalId}`
        const { json } = await sendRaw(url, path, project.secretKey, {})
        expect(json.jobs, externalId).toMatchObject([{ status: 'completed' }])
      }
      expect(JSON.parse(readFileSync(join(folder, 'receipt.json'), 'utf8')).receipt).toMatch(/^eyJ/)
    },
  )

  base('its receiver takes genuine webhooks and no others', async () => {
    const { readWebhook } = await load(blockOf(page, 'js webhook'))
    const secret = `whsec_${Buffer.from('of this test, and of nobody else').toString('base64')}`
    const body = JSON.stringify({ type: 'person.deletion.completed' })
    const headersAt = (time: Date) => ({
      'webhook-id': 'one',
      'webhook-timestamp': String(Math.floor(time.getTime() / 1_000)),
      // As after a rotation: of the old secret first.
      'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('one', time, body)}`,
    })
    const headers = headersAt(new Date())
    expect(readWebhook(secret, headers, body)).toEqual({ type: 'person.deletion.completed' })
    expect(() => readWebhook(secret, headers, `${body} `)).toThrow('not genuine')
    const old = headersAt(new Date(Date.now() - 600_000))
    expect(() => readWebhook(secret, old, body)).toThrow('too old')
  })

  base('its proof of a user id is one', async () => {
    const { identifyProof } = await load(blockOf(page, 'js proof'))
    const secret = 'ab'.repeat(32)
    expect(
      await isProven(
        { proofs: 'tokens', secrets: [secret], publicKeys: [] },
        'user-4',
        identifyProof(secret, 'user-4'),
      ),
    ).toBe(true)
    expect(
      await isProven(
        { proofs: 'tokens', secrets: [secret], publicKeys: [] },
        'user-5',
        identifyProof(secret, 'user-4'),
      ),
    ).toBe(false)
  })
})

describe('data-protection.md', () => {
  const page = 'docs/data-protection.md'

  test('names every table', async ({ db }) => {
    const tables = await db.sql<{ name: string }>`
      select case nspname when 'public' then relname else nspname || '.' || relname end as name
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace
      where nspname in ('public', 'auth') and relkind in ('r', 'p') and not relispartition`
    expect(tables.length).toBeGreaterThan(30)
    const text = readPage(page)
    const unnamed = tables.filter(({ name }) => !text.includes(`\`${name}\``))
    expect(unnamed).toEqual([])
  })

  test(
    'its commands carry out the rights of a person, and the receipt can be checked without Lethe',
    limit,
    async ({ address, project }) => {
      const { env, url } = await serving(address, project)
      await sendRaw(url, '/v1/persons', project.secretKey, {
        method: 'POST',
        body: { externalId: 'user-1', properties: { email: 'old@example.com' } },
      })
      const folder = newFolder()
      writeFileSync(join(folder, 'rights.sh'), blockOf(page, 'sh'))
      const { stdout } = await run('bash', ['-euo', 'pipefail', 'rights.sh'], { cwd: folder, env })
      expect(readFileSync(join(folder, 'person.json'), 'utf8')).toContain('old@example.com')
      expect(stdout).toContain('The receipt is genuine.')

      const program = join(folder, 'check.py')
      writeFileSync(program, blockOf('docs/erasure.md', 'python'))
      const check = () => run('python3', ['check.py'], { cwd: folder, env })
      expect((await check()).stdout).toContain('Signature Verified Successfully')
      const file = join(folder, 'receipt.json')
      const { receipt } = JSON.parse(readFileSync(file, 'utf8'))
      const [head, , signature] = receipt.split('.')
      const forged = Buffer.from('{"externalIdSalt":""}').toString('base64url')
      writeFileSync(file, JSON.stringify({ receipt: [head, forged, signature].join('.') }))
      await expect(check()).rejects.toThrow('pkeyutl')
      writeFileSync(join(folder, 'jwks.json'), '{"keys":[]}')
      await expect(check()).rejects.toThrow('a key that is not in the list')
    },
  )
})

describe('recordings.md', () => {
  const page = 'docs/recordings.md'

  test('its commands hold a public key to origins', limit, async ({ address, project }) => {
    const env = await commandShell(address)
    const made = await run(
      'bash',
      ['-c', `lethe keys create --project ${project.id} --kind public --name page --json`],
      { env },
    )
    const commands = blockOf(page, 'sh')
      .replaceAll('npx lethe', 'lethe')
      .replaceAll('KEY_ID', JSON.parse(made.stdout).key.id)
      .replaceAll('--project 1', `--project ${project.id}`)
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', commands], { env })
    expect(stdout).toContain('https://shop.example\nhttps://*.example.com\n')
    expect(stdout.trim().split('\n').at(-1)).toBe('Any origin.')
  })

  test('its SQL is what the tables take', async ({ address }) => {
    const blocks = [
      ...blocksOf(page, 'sql'),
      ...readPage(page).matchAll(/^ {3}```sql\n(.*?)^ {3}```$/gms),
    ]
    const statements = blocks.map((one) => (typeof one === 'string' ? one : (one[1] as string)))
    expect(statements).toHaveLength(2)
    const { client, end } = await connectOne(address)
    for (const text of statements) {
      await client.query('begin')
      await client.query(text)
      await client.query('rollback')
    }
    await end()
  })
})

describe('security.md', () => {
  test('its commands rotate a secret key', limit, async ({ address, project }) => {
    const env = await commandShell(address)
    const commands = blockOf('docs/security.md', 'sh').replace(
      /--project 1/g,
      `--project ${project.id}`,
    )
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${commands}\necho "$NEW"`], {
      env,
    })
    expect(stdout.trim().split('\n').at(-1)).toMatch(/^sk_\w{20,}$/)
    const { stdout: list } = await run(
      'bash',
      ['-c', `lethe keys list --project ${project.id} --json`],
      { env },
    )
    const keys = JSON.parse(list).keys.filter(({ kind }: { kind: string }) => kind === 'secret')
    expect(keys).toHaveLength(2)
    expect(keys[0].revokedAt ?? keys[0].endsAt ?? keys[0].expiresAt).not.toBeNull()
  })
})

base('README.md leads to the index', () => {
  expect(readPage('README.md')).toContain('(docs/README.md)')
})

base.for(pages.filter((path) => path !== 'docs/README.md'))(
  '%s: the index names tests that hold it; where it has commands, one of them reads it',
  (path) => {
    const name = path.slice('docs/'.length)
    const rows = readPage('docs/README.md').split('\n')
    const row = rows.find((one) => one.startsWith(`| [${name}](${name}) |`)) ?? ''
    const tests = [...row.matchAll(/`((?:acceptance\/)?[\w-]+\.test\.ts)`/g)].map(([, one]) => one)
    expect(tests.length, row).toBeGreaterThan(0)
    const page = readPage(path)
    if (!page.includes('```')) {
      for (const one of tests) expect(page).toContain(`\`${one}\``)
      return
    }
    const texts = tests.map((one) => readPage(placeOfTest(one as string)))
    expect(
      texts.some((text) => text.includes(name)),
      `${name}: ${tests}`,
    ).toBe(true)
  },
)

function placeOfTest(name: string): string {
  const folders = name.startsWith('acceptance/')
    ? ['']
    : ['packages/server/test/', 'packages/sdk-browser/test/']
  const found = folders.find((folder) => existsSync(join(root, folder, name)))
  if (found === undefined) throw new Error(`There is no ${name}.`)
  return found + name
}

async function load(code: string) {
  const file = join(newFolder(), 'module.mjs')
  writeFileSync(file, code)
  return import(pathToFileURL(file).href)
}

/** The environment of a shell that has the command. */
async function commandShell(address: DbAddress) {
  const settings = await newEnvironment(address, ofDatabase)
  const bin = newFolder()
  symlinkSync(inject('command'), join(bin, 'lethe'))
  const PATH = `${bin}:${dirname(process.execPath)}:${settings.PATH}`
  return { ...settings, PATH }
}

/** A service with a worker, and the environment of a shell that reaches it too. */
async function serving(address: DbAddress, project: TestProject) {
  const env = await commandShell(address)
  const { found: url } = await startLethe(['serve'], env, greeting)
  return { url, env: { ...env, LETHE_URL: url, LETHE_SECRET_KEY: project.secretKey } }
}
