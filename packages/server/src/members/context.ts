import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Cursors } from '../http/page.ts'
import type { Log } from '../log.ts'
import type { Recordings } from '../recordings/upload.ts'
import type { Db } from '../sql.ts'
import type { SignIn } from './open-sign-in.ts'

/** What the dashboard needs to know about the installation. */
export interface DashboardOptions {
  signIn: SignIn
  /** As in https://lethe.example.com, without a slash at the end; empty: taken from each request. */
  publicUrl: string
  /** The page of the replay frame: a path of this origin, or a URL on another origin. */
  replayUrl: string
  version: string
  database: { version: string; isEmbedded: boolean }
  blobs: { kind: 'folder' | 's3' }
  webhooks: WebhookSettings
}

export interface WebhookSettings {
  /** The secret from which the webhooks' secrets are derived. */
  secret: Buffer
  /** Whether webhooks may use private and loopback addresses, and plain http. */
  allowPrivate: boolean
}

/** What every route of the dashboard gets. */
export interface DashboardContext extends DashboardOptions {
  db: Db
  log: Log
  cursors: Cursors
  /** Undefined if the service has no recordings. */
  recordings: Recordings | undefined
  /** The maximum number of browsers of a person. */
  browsersPerPerson: number
}

/** The part of the service under /dashboard/v1. */
export type DashboardApp = Parameters<FastifyPluginAsyncTypebox<DashboardContext>>[0]
