import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { kindOfKeyText } from '../projects/key-text.ts'
import { createKey } from '../projects/store.ts'
import type { Db, Sql } from '../sql.ts'
import type { Sdk } from './sdk-files.ts'

const demoDays = 1

/** Logs an action without a member, in its transaction. */
type Note = (
  tx: Sql,
  made: {
    action: 'project.created' | 'key.created'
    projectId: number
    subject: { kind: 'project' | 'key'; id: string }
    memberId: null
    addressRange: null
  },
) => Promise<void>

/**
 * Creates the project of the demo page with its public key, if there is none, and limits the key to
 * these origins. A revoked key stays revoked.
 */
export async function openDemo(db: Db, origins: readonly string[], note: Note): Promise<void> {
  await db.begin(async (tx) => {
    const [project] = await tx<{ id: number }>`
      insert into projects (name, is_demo, retention_days)
      values ('Demo', true, ${demoDays})
      on conflict (is_demo) where is_demo do nothing
      returning id`
    if (project) {
      const { id: projectId } = project
      const { key } = await createKey(tx, projectId, 'public', 'demo page')
      const made = { projectId, memberId: null, addressRange: null }
      const subject = { kind: 'project', id: String(projectId) } as const
      await note(tx, { ...made, action: 'project.created', subject })
      await note(tx, { ...made, action: 'key.created', subject: { kind: 'key', id: key.id } })
    }
    await tx`
      update keys k set allowed_origins = ${origins}
      from projects p
      where p.is_demo and k.project_id = p.id and k.kind = 'public'`
  })
}

/** Finds the demo's public key; undefined if no key works. */
export async function findDemoKey(sql: Sql): Promise<string | undefined> {
  const [key] = await sql<{ text: string }>`
    select k.public_text as text
    from keys k
    join projects p on p.id = k.project_id
    where p.is_demo and k.kind = 'public' and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > app_now())
    order by k.created_at
    limit 1`
  return key?.text
}

export interface DemoOptions {
  sdk: Sdk
  /** Called for each visit, because the key may be revoked. */
  findKey(): Promise<string | undefined>
  basePath: string
}

/** A small shop that records into the demo's project or, with `?key=pk_…`, into another one. */
export const demoRoutes: FastifyPluginAsync<DemoOptions> = async (
  app,
  { sdk, findKey, basePath },
) => {
  const page = await readFile(join(import.meta.dirname, 'demo-page.html'), 'utf8')

  app.get<{ Querystring: { key?: string } }>(
    '/demo',
    { schema: { hide: true } },
    async (request, reply) => {
      const { key: own } = request.query
      const isKey = typeof own === 'string' && kindOfKeyText(own) === 'public'
      const key = isKey ? own : await findKey()
      const nonce = randomBytes(16).toString('base64')
      const snippet = key === undefined ? '' : sdk.snippet.replaceAll('{{key}}', key)
      return reply
        .headers({
          'cache-control': 'no-store',
          // As strict as possible with inline scripts, because the SDK has to work with such a policy.
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
            .replace('<!-- snippet -->', () => snippet.replaceAll('{{host}}', basePath))
            .replaceAll(/<(script|style)>/g, `<$1 nonce="${nonce}">`)
            .replace('href="/"', () => `href="${basePath}/"`)
            .replaceAll('{{key}}', key ?? ''),
        )
    },
  )
}
