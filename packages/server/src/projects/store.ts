import { fragment, type Sql } from '../sql.ts'
import { hashOfKeyText, type KeyKind, newKeyText } from './key-text.ts'

export interface Project {
  id: number
  name: string
  createdAt: string
}

export interface Key {
  id: string
  projectId: number
  kind: KeyKind
  name: string
  last4: string
  createdAt: string
  /** Exact to about a minute. */
  lastUsedAt: string | null
  expiresAt: string | null
  revokedAt: string | null
}

const keyColumns = fragment`
  id, project_id as "projectId", kind, name, last4, created_at as "createdAt",
  last_used_at as "lastUsedAt", expires_at as "expiresAt", revoked_at as "revokedAt"`

export async function createProject(sql: Sql, name: string): Promise<Project> {
  const [project] = await sql<Project>`
    insert into projects (name) values (${name})
    returning id, name, created_at as "createdAt"`
  return project as Project
}

/** Creates a project with two keys, whose texts are shown only once. */
export async function createProjectWithKeys(
  tx: Sql,
  name: string,
): Promise<{ project: Project; secretKey: string; publicKey: string }> {
  const project = await createProject(tx, name)
  const secret = await createKey(tx, project.id, 'secret', 'first secret key')
  const publicKey = await createKey(tx, project.id, 'public', 'first public key')
  return { project, secretKey: secret.text, publicKey: publicKey.text }
}

/** The customer's projects, without the demo's. */
export function listProjects(sql: Sql): Promise<Project[]> {
  return sql<Project>`
    select id, name, created_at as "createdAt" from projects where not is_demo order by id`
}

export async function findProject(sql: Sql, id: number): Promise<Project | undefined> {
  const [project] = await sql<Project>`
    select id, name, created_at as "createdAt" from projects where id = ${id}`
  return project
}

/** Creates a key. The `text` of a secret key is not stored. */
export async function createKey(
  sql: Sql,
  projectId: number,
  kind: KeyKind,
  name: string,
): Promise<{ key: Key; text: string }> {
  const text = newKeyText(kind)
  // A public key is in every page that records, so its text may be shown again.
  const publicText = kind === 'public' ? text : null
  const [key] = await sql<Key>`
    insert into keys (project_id, kind, name, hash, last4, public_text)
    values (${projectId}, ${kind}, ${name}, decode(${hashOfKeyText(text)}, 'hex'),
      ${text.slice(-4)}, ${publicText})
    returning ${keyColumns}`
  return { key: key as Key, text }
}

export function listKeys(sql: Sql, projectId: number): Promise<Key[]> {
  return sql<Key>`
    select ${keyColumns} from keys
    where project_id = ${projectId}
    order by created_at, id`
}

/**
 * Ends a key now or after an overlap. An end that is already set can only be moved forward. Returns
 * whether there is such a key.
 */
export async function revokeKey(sql: Sql, id: string, overlapSeconds: number): Promise<boolean> {
  const rows =
    overlapSeconds > 0
      ? await sql`
          update keys
          set expires_at = least(expires_at, app_now() + ${overlapSeconds} * interval '1 second')
          where id = ${id}
          returning id`
      : await sql`
          update keys set revoked_at = least(revoked_at, app_now()) where id = ${id}
          returning id`
  return rows.length > 0
}

/** A key that works at this moment, by the hash of its text. */
export async function findWorkingKey(
  sql: Sql,
  hash: string,
): Promise<{ projectId: number; id: string; kind: KeyKind; isUseStale: boolean } | undefined> {
  const [key] = await sql<{ projectId: number; id: string; kind: KeyKind; isUseStale: boolean }>`
    select project_id as "projectId", id, kind,
      coalesce(last_used_at < app_now() - interval '1 minute', true) as "isUseStale"
    from keys
    where hash = decode(${hash}, 'hex')
      and revoked_at is null
      and (expires_at is null or expires_at > app_now())`
  return key
}

export async function touchKey(sql: Sql, projectId: number, id: string): Promise<void> {
  await sql`
    update keys set last_used_at = app_now() where project_id = ${projectId} and id = ${id}`
}

/**
 * Returns an origin as browsers send it: lower case, no path, no default port; undefined for other
 * texts. `https://*.example.com` stands for all subdomains of example.com.
 */
export function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin =
    url !== undefined &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.pathname === '/' &&
    url.search === '' &&
    url.hash === ''
  return isOrigin ? url.origin : undefined
}
