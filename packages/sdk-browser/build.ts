import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type OutputChunk, rolldown } from 'rolldown'
import { internalNames } from './build/internal-names.ts'
import { patchRrweb } from './build/rrweb.ts'
import { snippetOf } from './build/snippet.ts'

const here = import.meta.dirname

export interface Manifest {
  version: string
  /** Sizes in bytes; `integrity` as browsers want it (sha384). */
  files: Record<string, { bytes: number; gzip: number; integrity: string }>
}

/**
 * Builds what is delivered: `lethe.js` with `recorder.js` and `more.js` (what only settings ask for)
 * beside it for the script tag, `esm/` for bundlers, types, the snippet, and a manifest of all that.
 * The folder is replaced.
 */
export async function build(folder = join(here, 'dist')): Promise<Manifest> {
  const { version } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'))
  const files = new Map<string, string>()
  const put = (chunks: OutputChunk[], prefix = '') => {
    for (const { fileName, code } of chunks) {
      files.set(
        prefix + fileName,
        (fileName.startsWith('record') ? banner : '') + code.replace(/\/\* @__PURE__ \*\/ ?/g, ''),
      )
    }
  }
  const define = { __VERSION__: version, LATE: false }
  const names: Record<string, string | false> = {}
  const late = { ...define, LATE: true }
  put(await bundle({ recorder: 'src/recording/recording.ts' }, 'lethe_recorder', late, names))
  put(await bundle({ more: 'src/more/more.ts' }, 'lethe_more', late, names))
  // Half as long, and as good: it is in the script that every page loads.
  const integrity = (name: string) => integrityOf(files.get(name) ?? '', 'sha256')
  const known = {
    RECORDER_INTEGRITY: integrity('recorder.js'),
    MORE_INTEGRITY: integrity('more.js'),
  }
  put(await bundle({ lethe: 'src/script.ts' }, 'script', { ...define, ...known }, names))
  // Each a bundle of its own: with files of what they have in common pages would load more of them.
  for (const [name, file] of Object.entries(modules)) {
    put(await bundle({ [name]: file }, undefined, define, names), 'esm/')
  }
  const api = await readFile(join(here, 'src/api.ts'), 'utf8')
  files.set('index.d.ts', `${api}\nexport declare const lethe: Lethe\n`)
  files.set('snippet.html', snippetOf(version, integrityOf(files.get('lethe.js') ?? '')))

  const manifest: Manifest = { version, files: {} }
  await rm(folder, { recursive: true, force: true })
  for (const [name, text] of files) {
    const path = join(folder, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
    const bytes = Buffer.byteLength(text)
    const gzip = gzipSync(text, { level: 9 }).length
    manifest.files[name] = { bytes, gzip, integrity: integrityOf(text) }
  }
  await writeFile(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  return manifest
}

const modules = {
  index: 'src/index.ts',
  recording: 'src/recording/recording.ts',
  more: 'src/more/more.ts',
}

const banner = '/*! Lethe, MIT, with rrweb, MIT */\n'

const natives = Object.fromEntries(
  Object.entries({
    'src/natives.ts': 'JSON Date Math Promise setTimeout clearTimeout',
    'src/recording/page-natives.ts': 'Map Set WeakMap WeakSet Array Proxy Reflect',
  }).flatMap(([file, names]) =>
    names.split(' ').map((name): [string, [string, string]] => [name, [join(here, file), name]]),
  ),
)

/**
 * A script with a global name, or a module where none is given. All share `names`: what one calls a
 * property of the other's.
 */
async function bundle(
  input: Record<string, string>,
  name: string | undefined,
  values: Record<string, string | boolean>,
  names: Record<string, string | false>,
) {
  const build = await rolldown({
    input,
    cwd: here,
    external: ['./recording/recording.ts', './more/more.ts'],
    platform: 'browser',
    plugins: [patchRrweb()],
    transform: {
      target: 'es2021',
      // What a page has put in their place is not used, neither by us nor by rrweb.
      inject: natives,
      define: Object.fromEntries(
        Object.entries(values).map(([each, value]) => [each, JSON.stringify(value)]),
      ),
    },
  })
  const { output, mangleCache } = await build.generate({
    ...(name ? { format: 'iife', name } : { format: 'esm' }),
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    paths: Object.fromEntries(
      Object.entries(modules).map(([each, file]) => [join(here, file), `./${each}.js`]),
    ),
    minify: {
      compress: true,
      mangle: true,
      mangleProps: { include: internalNames, cache: names },
      codegen: { removeWhitespace: true },
    },
  })
  Object.assign(names, mangleCache)
  await build.close()
  return output.filter((each) => each.type === 'chunk')
}

export const integrityOf = (text: string, hash = 'sha384') =>
  `${hash}-${createHash(hash).update(text).digest('base64')}`

if (import.meta.main) {
  const { files } = await build()
  for (const [name, { bytes, gzip }] of Object.entries(files)) {
    console.log(`${name.padEnd(20)} ${String(bytes).padStart(7)} bytes ${gzip} gzip`)
  }
}
