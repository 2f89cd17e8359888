import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyPluginAsync } from 'fastify'
import { ApiError } from '../api-error.ts'
import { BlobFault, type Blobs } from '../blobs/blobs.ts'

/** The built browser SDK, in memory. */
export interface Sdk {
  version: string
  /** By name: the scripts that pages load, and manifest.json with their sizes and hashes. */
  files: ReadonlyMap<string, Buffer>
  /** For the head of a page, with the placeholders `{{host}}` and `{{key}}`. */
  snippet: string
}

interface Manifest {
  version: string
  files: Record<string, { bytes: number; gzip: number; integrity: string }>
}

/** The files that pages load; the rest of the build is for the npm package. */
const servedNames = ['lethe.js', 'recorder.js', 'more.js']

const versionPattern = /^\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.-]{1,40})?$/

/**
 * Reads the build of the SDK; returns undefined if there is none. Throws if a file does not match the
 * manifest, because browsers would refuse its hash.
 */
export async function readSdk(folder: string): Promise<Sdk | undefined> {
  const read = (name: string) => readFile(join(folder, name))
  const manifestBytes = await read('manifest.json').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (!manifestBytes) return undefined
  const manifest: Manifest = JSON.parse(manifestBytes.toString())
  const files = new Map([['manifest.json', manifestBytes]])
  for (const name of servedNames) {
    const bytes = await read(name)
    if (`sha384-${hash('sha384', bytes, 'base64')}` !== manifest.files[name]?.integrity) {
      throw new Error(`The SDK's ${name} does not match its manifest: build it again.`)
    }
    files.set(name, bytes)
  }
  return { version: manifest.version, files, snippet: (await read('snippet.html')).toString() }
}

/**
 * Stores this version's files in the blob store: pages name a version and its hash, and continue to
 * load it after the service was upgraded.
 */
export async function publishSdk(blobs: Blobs, { version, files }: Sdk): Promise<void> {
  await blobs.open(`sdk/${version}/`)
  for (const [name, bytes] of files) await blobs.put(`sdk/${version}/${name}`, bytes)
}

/** How long a missing version is remembered before the blob store is asked again. */
const lookMilliseconds = 60_000
const versionsMaximum = 200

const compress = promisify(gzip)

interface ServedFile {
  bytes: Buffer
  gzipped: Buffer
}

/** Finds files of this version and of all published ones. */
function sdkFinder(blobs: Blobs, sdk: Sdk) {
  const served = new Map<string, Promise<ServedFile>>()
  const missing = new Map<string, number>()

  async function load(version: string, name: string): Promise<ServedFile> {
    const own = version === sdk.version ? sdk.files.get(name) : undefined
    const bytes = own ?? Buffer.from(await blobs.get(`sdk/${version}/${name}`))
    return { bytes, gzipped: await compress(bytes, { level: 9 }) }
  }

  return async (version: string, name: string): Promise<ServedFile | undefined> => {
    if (!versionPattern.test(version) || !sdk.files.has(name)) return undefined
    const key = `${version}/${name}`
    const now = performance.now()
    if ((missing.get(key) ?? 0) > now) return undefined
    let file = served.get(key)
    if (!file) {
      if (served.size >= versionsMaximum) return undefined
      file = load(version, name)
      served.set(key, file)
    }
    try {
      return await file
    } catch (error) {
      served.delete(key)
      if (!(error instanceof BlobFault) || error.code !== 'blob_missing') throw error
      if (missing.size >= versionsMaximum) missing.clear()
      missing.set(key, now + lookMilliseconds)
      return undefined
    }
  }
}

/** Pages of any origin may load the files and check their hashes. */
const forPages = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
  vary: 'accept-encoding',
}

/** Serves `/sdk/<version>/<file>`, which never changes, and the newest `/sdk/manifest.json`. */
export const sdkRoutes: FastifyPluginAsync<{ blobs: Blobs; sdk: Sdk }> = async (
  app,
  { blobs, sdk },
) => {
  const find = sdkFinder(blobs, sdk)

  app.get('/sdk/manifest.json', { schema: { hide: true } }, async (_request, reply) =>
    reply
      .headers({ ...forPages, 'cache-control': 'no-cache' })
      .type('application/json; charset=utf-8')
      .send(sdk.files.get('manifest.json')),
  )

  app.get<{ Params: { version: string; name: string } }>(
    '/sdk/:version/:name',
    { schema: { hide: true } },
    async ({ params: { version, name }, headers }, reply) => {
      const file = await find(version, name)
      if (!file) throw new ApiError('not_found', 'There is nothing at this path.')
      const isGzip = /\bgzip\b/.test(headers['accept-encoding'] ?? '')
      const type = name.endsWith('.json') ? 'application/json' : 'text/javascript'
      return reply
        .headers({
          ...forPages,
          'cache-control': 'public, max-age=31536000, immutable',
          ...(isGzip && { 'content-encoding': 'gzip' }),
        })
        .type(`${type}; charset=utf-8`)
        .send(isGzip ? file.gzipped : file.bytes)
    },
  )
}
