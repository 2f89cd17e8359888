import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { test as base, describe, expect } from 'vitest'
import { build, integrityOf, type Manifest } from '../build.ts'
import packageFile from '../package.json' with { type: 'json' }

const test = base.extend<{ built: { folder: string; manifest: Manifest } }>({
  built: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
    async ({}, use) => {
      const folder = await mkdtemp(join(tmpdir(), 'lethe-build-'))
      await use({ folder, manifest: await build(folder) })
      await rm(folder, { recursive: true })
    },
    { scope: 'file' },
  ],
})

describe('what a visitor loads', () => {
  test('is at most 5 KB at once and 32 KB in all, gzip, as a script and as modules', ({
    built,
  }) => {
    const { files } = built.manifest
    const sum = (...names: string[]) =>
      names.reduce((total, name) => total + (files[name]?.gzip ?? Number.NaN), 0)
    expect(sum('lethe.js')).toBeLessThanOrEqual(5_000)
    expect(sum('lethe.js', 'recorder.js')).toBeLessThanOrEqual(32_000)
    const modules = Object.keys(files).filter((name) => /^esm\/(?!more)/.test(name))
    expect(sum(...modules.filter((name) => name !== 'esm/recording.js'))).toBeLessThanOrEqual(5_000)
    expect(sum(...modules)).toBeLessThanOrEqual(32_000)
    // What only settings ask for.
    expect(sum('more.js')).toBeLessThanOrEqual(12_000)
  })

  test('needs nothing else: no import of a package is left', async ({ built }) => {
    for (const name of Object.keys(built.manifest.files).filter((each) => each.endsWith('.js'))) {
      const text = await readFile(join(built.folder, name), 'utf8')
      const imports = text.match(/(?<![\w`@])(?:from|import)\s*\(?["'`][^"'`]*["'`]/g) ?? []
      expect(imports.filter((each) => !/["'`]\.\/\w+\.js["'`]$/.test(each))).toEqual([])
    }
  })

  test('prints nothing of a page to the console', async ({ built }) => {
    for (const name of ['recorder.js', 'esm/recording.js']) {
      const text = await readFile(join(built.folder, name), 'utf8')
      expect(text.match(/.{20}console\s*[.[].{20}/g)).toBeNull()
    }
  })
})

test('the manifest says what each file is, and the snippet and the script hold to it', async ({
  built,
}) => {
  const { folder, manifest } = built
  expect(manifest.version).toBe(packageFile.version)
  for (const [name, { bytes, gzip, integrity }] of Object.entries(manifest.files)) {
    const content = await readFile(join(folder, name))
    expect([name, content.length, gzipSync(content, { level: 9 }).length]).toEqual([
      name,
      bytes,
      gzip,
    ])
    expect(integrity).toBe(`sha384-${createHash('sha384').update(content).digest('base64')}`)
  }
  const text = (name: string) => readFile(join(folder, name), 'utf8')
  expect(await text('snippet.html')).toContain(manifest.files['lethe.js']?.integrity)
  expect(await text('snippet.html')).toContain(`{{host}}/sdk/${manifest.version}/lethe.js`)
  for (const late of ['recorder.js', 'more.js']) {
    expect(await text('lethe.js')).toContain(integrityOf(await text(late), 'sha256'))
  }
  expect(JSON.parse(await text('manifest.json'))).toEqual(manifest)
})

test('the snippet is at most 1 KB', ({ built }) => {
  expect(built.manifest.files['snippet.html']?.bytes).toBeLessThanOrEqual(1024)
})

test('a build of the same source is the same, byte for byte', async ({ built }) => {
  const again = await mkdtemp(join(tmpdir(), 'lethe-build-'))
  expect(await build(again)).toEqual(built.manifest)
  expect((await readdir(again, { recursive: true })).sort()).toEqual(
    (await readdir(built.folder, { recursive: true })).sort(),
  )
  await rm(again, { recursive: true })
})

test('an application in strict TypeScript is helped by the types, and stopped by them', async ({
  built,
}) => {
  const { folder } = built
  await writeFile(
    join(folder, 'application.ts'),
    `import { lethe, type Options } from './index.js'
    const options: Options = { host: 'https://lethe.example', masking: 'strict', consent: 'pending' }
    lethe.init('pk_x', options)
    lethe.identify('jane', { hash: 'ab' })
    lethe.reset(); lethe.stop(); lethe.optIn(); lethe.optOut(); lethe.start()
    const id: string | undefined = lethe.browserId()
    const start = { on: 'error', only: ['/shop', /[?]try/], never: ['/admin'], minimumSeconds: 5 } as const
    lethe.init('pk_x', { start, sampleRate: 0.5, cookieDomain: 'shop.example', signals: { errors: true } })
    // @ts-expect-error there is no such signal
    lethe.init('pk_x', { signals: { keys: true } })
    lethe.identify(7)
    // @ts-expect-error no user is nobody's id
    lethe.identify(undefined)
    // @ts-expect-error there is no such preset
    lethe.init('pk_x', { masking: 'none' })
    export const version: string = lethe.version\n`,
  )
  const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc')
  const words = [
    '--noEmit',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--lib',
    'es2022',
    '--types',
    '',
  ]
  const { stdout, status } = spawnSync(
    tsc,
    [
      ...words,
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--allowImportingTsExtensions',
      'application.ts',
    ],
    { cwd: folder, encoding: 'utf8' },
  )
  expect([stdout, status]).toEqual(['', 0])
})
