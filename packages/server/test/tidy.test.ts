import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')

/** Source files of a folder, by their path from the root. */
function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/(?:^|\/)(?:node_modules|dist)\//.test(file))
    .map((file) => join(folder, file))
}

const read = (file: string) => readFileSync(join(root, file), 'utf8')

/** What a file imports: files of ours by their path from the root, packages by their name. */
function importsOf(file: string): string[] {
  const imports =
    /^(?:import|export)\b[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm
  return [...read(file).matchAll(imports)].map(([, from, bare, dynamic]) => {
    const target = (from ?? bare ?? dynamic) as string
    return target.startsWith('.') ? relative(root, join(root, dirname(file), target)) : target
  })
}

const server = sources('packages/server/src')
const command = sources('packages/server/bin')
const contract = sources('packages/contract/src')

/** From the top; a folder imports itself and what comes after it. */
const order = [
  'bin',
  'app',
  'dashboard',
  'webhooks',
  'members',
  'erasure',
  'retention',
  'recordings',
  'persons',
  'projects',
  'operations',
  'backup',
  'blobs',
  'http',
  'embedded',
  'sql',
]

/** `sql` means the files directly in src, which are in no folder. */
function folderOf(file: string): string {
  const [, , place, folder, inside] = file.split('/')
  if (place === 'bin' || folder === 'app.ts') return folder === 'app.ts' ? 'app' : 'bin'
  return inside === undefined ? 'sql' : (folder as string)
}

const isStore = (file: string) => /(?:^|[/-])store\.ts$/.test(file)
const isRoutes = (file: string) => /(?:^|[/-])routes\.ts$/.test(file)

test('SECURITY.md names tests that are there', () => {
  const rows = read('SECURITY.md').split('\n')
  const named = /`([\w-]+\.test\.ts)`((?: "[^"]+",?)*)/g
  const tests = [...sources('packages/server/test'), ...sources('acceptance')]
  const missing = rows.flatMap((row) =>
    [...row.matchAll(named)].flatMap(([, file = '', titles = '']) => {
      const texts = tests.filter((one) => basename(one) === file).map(read)
      const wanted = [...titles.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title)
      if (texts.length === 0) return [file]
      return wanted.filter((title) => !texts.some((text) => text.includes(title)))
    }),
  )
  expect(missing).toEqual([])
})

test('the lists below are not empty', () => {
  expect(server.length).toBeGreaterThan(30)
  expect(command.length).toBeGreaterThan(5)
  expect(contract.length).toBeGreaterThan(5)
  expect(server.filter(isStore).length).toBeGreaterThan(3)
  expect(server.filter(isRoutes).length).toBeGreaterThan(2)
  expect(importsOf('packages/server/src/app.ts')).toContain('packages/server/src/persons/routes.ts')
})

describe('imports point one way', () => {
  test('the contract imports typebox and itself', () => {
    for (const file of contract) {
      for (const target of importsOf(file)) {
        expect(
          target === 'typebox' || target.startsWith('packages/contract/'),
          `${file}: ${target}`,
        ).toBe(true)
      }
    }
  })

  test('nothing imports the command, and the app is put together by nothing else', () => {
    for (const file of server) {
      for (const target of importsOf(file)) {
        expect(target.startsWith('packages/server/bin/'), `${file}: ${target}`).toBe(false)
        expect(target, file).not.toBe('packages/server/src/app.ts')
      }
    }
  })

  test('a store imports no other store, and routes no other routes', () => {
    for (const file of server) {
      for (const target of importsOf(file).filter((one) =>
        one.startsWith('packages/server/src/'),
      )) {
        if (isStore(file)) {
          expect(isStore(target) || isRoutes(target), `${file}: ${target}`).toBe(false)
        }
        if (isRoutes(file)) expect(isRoutes(target), `${file}: ${target}`).toBe(false)
      }
    }
  })

  test('folders have an order, types included', () => {
    const found = new Set<string>()
    const against: string[] = []
    for (const file of [...server, ...command]) {
      const from = folderOf(file)
      for (const target of importsOf(file).filter((one) => one.startsWith('packages/server/'))) {
        const to = folderOf(target)
        if (from !== to) found.add(`${from} → ${to}`)
        if (order.indexOf(from) > order.indexOf(to)) against.push(`${file}: ${target}`)
      }
    }
    const lines = order.map((folder) => {
      const below = [...found].filter((one) => one.startsWith(`${folder} → `))
      return `${folder}: ${below.map((one) => one.split(' → ')[1]).join(', ')}`
    })
    console.log(`Folders, from the top, and what each imports:\n${lines.join('\n')}`)
    expect(against).toEqual([])
    expect(new Set([...server, ...command].map(folderOf))).toEqual(new Set(order))
  })

  test('no files import one another in a circle, types included', () => {
    const files = [...server, ...command, ...contract]
    const isDone = new Set<string>()
    const walk = (file: string, path: string[]): void => {
      expect(path.slice(path.indexOf(file)), `a circle at ${file}`).not.toContain(file)
      if (isDone.has(file)) return
      for (const target of importsOf(file).filter((one) => files.includes(one))) {
        walk(target, [...path, file])
      }
      isDone.add(file)
    }
    for (const file of files) walk(file, [])
  })

  test('only sql.ts and its pipelined.ts speak to the driver of the database', () => {
    // The library of the members' sign-in takes a pool of the driver itself.
    const allowed = ['sql.ts', 'pipelined.ts', 'members/sign-in.ts'].map(
      (file) => `packages/server/src/${file}`,
    )
    for (const file of server.filter((one) => !allowed.includes(one))) {
      expect(importsOf(file), file).not.toContain('pg')
    }
  })

  test('the library of the sign-in is loaded when it is needed, and not with the service', () => {
    const holder = 'packages/server/src/members/better-auth.ts'
    const loading =
      /^import (?!type\b)[^'"]*['"](?:better-auth|kysely|\.{1,2}\/(?:\w+\/)*better-auth\.ts)/m
    expect(loading.test(read(holder))).toBe(true)
    const files = [...server, ...command].filter((one) => one !== holder)
    for (const file of files) expect(loading.test(read(file)), file).toBe(false)
  })
})

test('only the command reads the environment or ends the process', () => {
  for (const file of server) {
    const text = read(file).replaceAll(/^\s*(?:\*|\/\/).*$/gm, '')
    expect(/\bprocess\.(?:env|exit|argv)\b/.test(text), file).toBe(false)
  }
})

test('no file has a name that says nothing', () => {
  const banned =
    /^(?:utils?|helpers?|common|lib|services?|managers?|types|constants|misc|shared|index)(?:\.|$)/
  for (const file of [...server, ...command, ...contract, ...sources('packages/sdk-browser/src')]) {
    const names = [basename(file), ...dirname(file).split('/').slice(2)]
    const isEntry = file === 'packages/sdk-browser/src/index.ts'
    if (!isEntry)
      expect(
        names.filter((name) => banned.test(name)),
        file,
      ).toEqual([])
  }
})

test('no test is switched off or alone', () => {
  const tests = sources('packages').filter((file) => file.endsWith('.test.ts'))
  expect(tests.length).toBeGreaterThan(10)
  for (const file of tests) {
    expect(/\b(?:test|it|describe)\.(?:skip|todo|only)\(\s*['"`]/.test(read(file)), file).toBe(
      false,
    )
  }
})

/** Statements that name no project, by file and function, and why. */
const acrossProjects: Record<string, string> = {
  'dashboard/session-store.ts listSessions': 'the conditions are joined from a list, project first',
  'distribute.ts readNodes': 'the catalogue of Citus names the table',
  'erasure/jobs.ts listDeletionJobs': 'the same',
  'dashboard/system-store.ts readSystemFacts': 'counts of the whole installation',
  'members/store.ts deleteLinksOf': 'a member belongs to no project',
  'members/store.ts deleteEnded': 'upkeep of the whole',
  'operations/facts.ts readFacts': 'the same',
  'projects/store.ts revokeKey': 'the command names a key by its id alone',
  'recordings/session-store.ts listTabs': 'of the chunks that a fragment names, project first',
  'recordings/quotas.ts deleteOldUsage': 'upkeep of the whole',
}

test('every statement of the server names the project, or has its reason not to', () => {
  const tables =
    /\b(?:persons|person_search|search_segments|person_browsers|browsers|sessions|chunks|deletion_jobs|deletion_attempts|keys|browser_keys|receipts|erased_persons|webhooks|webhook_deliveries|ingest_usage|session_notes|session_links|identified_persons)\b/
  const template =
    /\b(?:sql|tx|short|keySql|fragment)(?:<[^`]*?>)?`((?:[^`\\$]|\$(?!\{)|\\.|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\})*)`/g
  const without = new Set<string>()
  let count = 0
  for (const file of [...server, ...command]) {
    const text = read(file)
    for (const { 1: statement = '', index } of text.matchAll(template)) {
      if (!/^\s*(?:with|select|insert|update|delete)\b/.test(statement)) continue
      if (!tables.test(statement.replaceAll(/\$\{[^}]*\}/g, ''))) continue
      count++
      if (/project_id|search_page\(/.test(statement)) continue
      const [name] = [...text.slice(0, index).matchAll(/function (\w+)/g)]
        .map(([, one]) => one)
        .slice(-1)
      without.add(`${file.replace(/^packages\/server\/(?:src\/)?/, '')} ${name}`)
    }
  }
  expect(count).toBeGreaterThan(100)
  // Also an exemption that nothing needs any more is a fault.
  expect([...without].sort()).toEqual(Object.keys(acrossProjects).sort())
})
