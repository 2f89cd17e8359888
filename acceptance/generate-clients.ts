/*
 * Generates clients from openapi.json into a folder, with two generators. Both need the compiler's
 * API, which the compiler of this repository does not have any more: they get the one before.
 */
import { writeFile } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , description = '', folder = ''] = process.argv

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript'
      ? next(specifier, { ...context, parentURL: import.meta.url })
      : next(specifier, context),
})

const { createClient } = await import('@hey-api/openapi-ts')
await createClient({
  input: description,
  output: { path: join(folder, 'hey-api'), postProcess: [] },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
  logs: { level: 'silent' },
})

const { astToString, default: openapiTypescript } = await import('openapi-typescript')
const types = await openapiTypescript(pathToFileURL(description))
await writeFile(join(folder, 'schema.d.ts'), astToString(types))
