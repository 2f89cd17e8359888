import { randomBytes } from 'node:crypto'
import { chmod, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { hashOfKeyText, kindOfKeyText } from '../projects/key-text.ts'
import { createKey, demoKeyName, findWorkingKey, listProjects } from '../projects/store.ts'
import type { Sql } from '../sql.ts'
import type { Sdk } from './sdk-files.ts'

/**
 * The public key of the demo page, of the first project; undefined while there is no project. Of a
 * key only its hash is stored, so this one's text is kept in a file; where that is lost or the key
 * was revoked, a new one is made.
 */
export async function demoKey(sql: Sql, path: string): Promise<string | undefined> {
  const kept = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return ''
  })
  const isKey = kindOfKeyText(kept.trim()) === 'public'
  if (isKey && (await findWorkingKey(sql, hashOfKeyText(kept.trim())))) return kept.trim()
  const [project] = await listProjects(sql)
  if (!project) return undefined
  const { text } = await createKey(sql, project.id, 'public', demoKeyName)
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(temporary, `${text}\n`, { mode: 0o600 })
  await chmod(temporary, 0o600)
  await rename(temporary, path)
  return text
}

export interface DemoOptions {
  sdk: Sdk
  /** Asked for at each visit: the first project may be made later, the key be revoked. */
  findKey(): Promise<string | undefined>
}

/** A small shop that is recorded, for whoever wants to see recordings arrive. */
export const demoRoutes: FastifyPluginAsync<DemoOptions> = async (app, { sdk, findKey }) => {
  const page = await readFile(join(import.meta.dirname, 'demo-page.html'), 'utf8')

  app.get('/demo', { schema: { hide: true } }, async (_request, reply) => {
    const key = await findKey()
    const nonce = randomBytes(16).toString('base64')
    const snippet = key === undefined ? '' : sdk.snippet.replaceAll('{{key}}', key)
    return reply
      .headers({
        'cache-control': 'no-store',
        // As strict as a page with inline scripts can be: the SDK has to work under it.
        'content-security-policy': [
          "default-src 'none'",
          `script-src 'nonce-${nonce}' 'self'`,
          `style-src 'nonce-${nonce}'`,
          "img-src 'self' data:",
          "connect-src 'self'",
          "worker-src 'self' blob:",
          "base-uri 'none'",
          "form-action 'none'",
          "frame-ancestors 'none'",
        ].join('; '),
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      .type('text/html; charset=utf-8')
      .send(
        page
          .replace('<!-- snippet -->', () => snippet.replaceAll('{{host}}', ''))
          .replaceAll(/<(script|style)>/g, `<$1 nonce="${nonce}">`)
          .replaceAll('{{key}}', key ?? ''),
      )
  })
}
