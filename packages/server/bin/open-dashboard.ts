import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replayPath } from '@lethe/contract/dashboard-replay.ts'
import { type Pages, readPages } from '../src/dashboard/pages.ts'
import { basePathOf } from '../src/http/base-path.ts'
import type { Log } from '../src/log.ts'
import type { DashboardOptions } from '../src/members/context.ts'
import { openSignIn } from '../src/members/open-sign-in.ts'
import { readInstanceSecrets } from '../src/members/secret.ts'
import { openPool } from '../src/sql.ts'
import type { DeliveryOptions } from '../src/webhooks/deliver.ts'
import type { Opened } from './open.ts'
import type { Storage } from './open-storage.ts'

const packageFile = join(import.meta.dirname, '../package.json')
const pagesFolder = join(import.meta.dirname, '../../dashboard/dist')

/** Few are enough: checking who is signed in takes a millisecond. */
const signInConnections = 2

/** Opens what the dashboard needs, and closes it after `work`. */
export async function withDashboard(
  opened: Opened,
  storage: Storage,
  work: (dashboard: DashboardOptions, pages: Pages | undefined) => Promise<void>,
): Promise<void> {
  const { config, connection, db, facts, isEmbedded } = opened
  const secrets = await readInstanceSecrets(db.sql, storage.masterKeys)
  const pool = openPool(connection, signInConnections)
  try {
    const options: DashboardOptions = {
      signIn: openSignIn(pool, secrets.signIn, config.PUBLIC_URL),
      publicUrl: config.PUBLIC_URL,
      replayUrl: `${config.REPLAY_URL || basePathOf(config.PUBLIC_URL)}${replayPath}`,
      version: readVersion(),
      database: { version: facts.version, isEmbedded },
      blobs: { kind: config.BLOBS_URL === '' ? 'folder' : 's3' },
      webhooks: {
        secret: secrets.webhooks,
        allowPrivate: config.WEBHOOK_PRIVATE_ADDRESSES === 'allow',
      },
    }
    await work(options, await readPages(pagesFolder, basePathOf(config.PUBLIC_URL)))
  } finally {
    await pool.end()
  }
}

/** What the deliveries of webhooks need. */
export async function deliveryOptions(
  { config, db }: Opened,
  { masterKeys }: Storage,
  log: Log,
): Promise<DeliveryOptions> {
  const { webhooks } = await readInstanceSecrets(db.sql, masterKeys)
  const allowPrivate = config.WEBHOOK_PRIVATE_ADDRESSES === 'allow'
  return { db, log, secret: webhooks, allowPrivate, version: readVersion() }
}

export function readVersion(): string {
  return (JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }).version
}
