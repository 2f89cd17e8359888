import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Cursors } from '../http/page.ts'
import type { Log } from '../log.ts'
import type { Recordings } from '../recordings/upload.ts'
import type { Db } from '../sql.ts'
import type { SignIn } from './open-sign-in.ts'

/** The properties of an installation that its dashboard needs. */
export interface DashboardOptions {
  signIn: SignIn
  /** As in https://lethe.example.com, without a slash at the end; empty: taken from each request. */
  publicUrl: string
  /** The page of the replay frame: a path of this origin, or the URL of one of its own. */
  replayUrl: string
  version: string
  database: { version: string; isEmbedded: boolean }
  blobs: { kind: 'folder' | 's3' }
  webhooks: WebhookSettings
}

export interface WebhookSettings {
  /** What the webhooks' secrets are derived from. */
  secret: Buffer
  /** Whether webhooks may lead to private and loopback addresses, and by plain http. */
  allowPrivate: boolean
}

/** What every route of the dashboard is handed. */
export interface DashboardContext extends DashboardOptions {
  db: Db
  log: Log
  cursors: Cursors
  /** Undefined in a service that takes and shows no recordings. */
  recordings: Recordings | undefined
  /** How many a person may have. */
  browsersPerPerson: number
}

/** The part of the service under /dashboard/v1. */
export type DashboardApp = Parameters<FastifyPluginAsyncTypebox<DashboardContext>>[0]
