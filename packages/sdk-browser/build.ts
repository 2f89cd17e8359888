import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type OutputChunk, rolldown } from 'rolldown'
import { patchRrweb } from './build/rrweb.ts'
import { snippetOf } from './build/snippet.ts'

const here = import.meta.dirname

export interface Manifest {
  version: string
  /** Sizes in bytes; `integrity` as browsers want it (sha384). */
  files: Record<string, { bytes: number; gzip: number; integrity: string }>
}

/**
 * Builds what is delivered: `lethe.js` with `recorder.js` beside it for the script tag, `esm/` for
 * bundlers, types, the snippet, and a manifest of all that. The folder is made anew.
 */
export async function build(folder = join(here, 'dist')): Promise<Manifest> {
  const { version } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'))
  const files = new Map<string, string>()
  const put = (chunks: OutputChunk[], prefix = '') => {
    for (const chunk of chunks) files.set(prefix + chunk.fileName, banner + chunk.code)
  }
  const define = { __VERSION__: version }
  put(await bundle({ recorder: 'src/recording/recording.ts' }, 'letheRecorder', define))
  const integrity = integrityOf(files.get('recorder.js') ?? '')
  put(
    await bundle({ lethe: 'src/script.ts' }, 'script', {
      ...define,
      RECORDER_INTEGRITY: integrity,
    }),
  )
  put(await bundle({ index: 'src/index.ts' }, undefined, define), 'esm/')
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

const banner = '/*! Lethe, MIT. The recorder holds rrweb, MIT, (c) its contributors. */\n'

/** A script with a global name, or modules where none is given. */
async function bundle(
  input: Record<string, string>,
  name: string | undefined,
  texts: Record<string, string>,
) {
  const build = await rolldown({
    input,
    cwd: here,
    platform: 'browser',
    plugins: [patchRrweb()],
    transform: {
      target: 'es2021',
      define: Object.fromEntries(
        Object.entries(texts).map(([each, text]) => [each, JSON.stringify(text)]),
      ),
    },
  })
  const { output } = await build.generate({
    ...(name ? { format: 'iife', name } : { format: 'esm' }),
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    minify: true,
  })
  await build.close()
  return output.filter((each) => each.type === 'chunk')
}

const integrityOf = (text: string) => `sha384-${createHash('sha384').update(text).digest('base64')}`

if (import.meta.main) {
  const { files } = await build()
  for (const [name, { bytes, gzip }] of Object.entries(files)) {
    console.log(`${name.padEnd(20)} ${String(bytes).padStart(7)} bytes ${gzip} gzip`)
  }
}
