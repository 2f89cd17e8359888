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
  return [
    ...read(file).matchAll(/^(?:import|export)\b[^'"]*?from '([^']+)'|^import '([^']+)'/gm),
  ].map(([, from, bare]) => {
    const target = (from ?? bare) as string
    return target.startsWith('.') ? relative(root, join(root, dirname(file), target)) : target
  })
}

const server = sources('packages/server/src')
const command = sources('packages/server/bin')
const contract = sources('packages/contract/src')

const isStore = (file: string) => /(?:^|[/-])store\.ts$/.test(file)
const isRoutes = (file: string) => /(?:^|[/-])routes\.ts$/.test(file)

test('the lists below are of something', () => {
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

test('every statement names the project, or stands in the list of those that may not', () => {
  // Statements over all projects: keys by their hash, the worker's queue, upkeep of the whole.
  const acrossProjects: RegExp[] = [
    /from projects|into projects|update projects/,
    /keys\s+where hash|update keys/,
    /pg_\w+\(|current_setting|instance|migrations|select 1$/,
  ]
  const tables =
    /\b(?:persons|person_search|person_browsers|browsers|sessions|chunks|deletion_jobs|keys)\b/
  let count = 0
  for (const file of server.filter((one) => isStore(one) || one.includes('/persons/'))) {
    const text = read(file)
    for (const match of text.matchAll(/\b(?:sql|tx)(?:<[^`]*?>)?`([^`]*)`/g)) {
      const [, statement = ''] = match
      if (!tables.test(statement)) continue
      count++
      const isKnown = acrossProjects.some((one) => one.test(statement.trim()))
      // Conditions that are joined from a list stand in the same function.
      const begin = statement.includes('${join(')
        ? text.lastIndexOf('\n}\n', match.index)
        : match.index
      const whole = text.slice(begin, match.index + match[0].length)
      if (!isKnown)
        expect(/project_id|search_persons\(/.test(whole), `${file}: ${statement}`).toBe(true)
    }
  }
  expect(count).toBeGreaterThan(8)
})
