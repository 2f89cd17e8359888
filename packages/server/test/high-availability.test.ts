import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import {
  type InstalledPostgres,
  startInstalledPostgres,
} from '../../../scripts/installed-postgres.ts'
import { addressOf } from '../src/reach.ts'
import { connect, connectOne } from '../src/sql.ts'
import { type CuttingProxy, startCuttingProxy } from './cutting-proxy.ts'
import {
  type Answer,
  newProject,
  type RequestOptions,
  sendRaw,
  type TestProject,
} from './fixtures.ts'
import {
  eventually,
  greeting,
  newEnvironment,
  startLethe,
  urlOf,
  workerGreeting,
} from './lethe-process.ts'
import { hasPgbouncer, startPgbouncer } from './pgbouncer.ts'
import { byDepth, isDeep } from './proof/deep.ts'
import { events, shiftClock } from './recordings-fixtures.ts'

/*
 * Two services and a worker over a primary with a streaming standby. Under load the primary is
 * killed and the standby promoted; what leads to the database leads to the standby from then on, at
 * first while it is still read-only. Nothing of Lethe is restarted.
 *
 * The figures of docs/high-availability.md come from `npm run test:deep -- high-availability`.
 */

interface Setting {
  replication: 'synchronous' | 'asynchronous' | typeof behind
  /** Connections hang, as where the primary's machine vanishes; else they are ended, as by a server that dies. */
  isVanishing: boolean
  isPooled: boolean
}

const lagSeconds = byDepth(2, 5)
const behind = `asynchronous, ${lagSeconds} s behind` as const
const failovers: Omit<Setting, 'isPooled'>[] = [
  // The one in which people could come back.
  { replication: behind, isVanishing: true },
  ...(isDeep
    ? (['synchronous', 'asynchronous', behind] as const).map((replication) => ({
        replication,
        isVanishing: false,
      }))
    : []),
]
const settings: Setting[] = failovers.flatMap((failover) =>
  (isDeep && hasPgbouncer ? [false, true] : [false]).map((isPooled) => ({ ...failover, isPooled })),
)

const loadSeconds = byDepth(1, 10)
/** As long as what watches a cluster takes to notice, at least. */
const promotionSeconds = 1.5
const lanes = byDepth(2, 4)

const table: Record<string, unknown> = {}

test.for(settings)(
  'a failover, $replication, the machine vanishes: $isVanishing, pgbouncer: $isPooled',
  { timeout: 600_000 },
  async ({ replication, isVanishing, isPooled }, context) => {
    const cluster = await startCluster()
    if (!cluster) return context.skip('there is no installed PostgreSQL')
    const { primary, standby, entrance } = cluster
    const deployment = await deploy(entrance, isPooled)
    const load = startLoad(deployment)
    await sleep(loadSeconds * 1_000)
    await eventually(async () => load.visits.length > 20)
    const there = new Set(load.visits.filter(isThere).map(({ externalId }) => externalId))
    await followBy(primary, replication)
    if (replication === behind) {
      const { length: before } = load.erased
      freezeReplication(await walSender(primary))
      await sleep(lagSeconds * 1_000)
      // Whom the standby still has, and the ledger knows as erased.
      await eventually(
        async () => load.erased.slice(before).filter((id) => there.has(id)).length > 3,
      )
    }
    await sleep(loadSeconds * 1_000)

    primary.kill()
    if (isVanishing) entrance.strand(addressOf(standby.url))
    else entrance.leadTo(addressOf(standby.url))
    await sleep(promotionSeconds * 1_000)
    standby.promote()
    await eventually(async () => load.acknowledgedSince(Date.now() - 500) > 0)
    await sleep(loadSeconds * 1_000)
    await load.stop()
    // In a deep run as long as it takes: leases, retries and uploads that were cut off have to run out.
    if (!isDeep) await shiftClock(addressOf(standby.url), 121)

    const lost = await findLost(deployment, load.visits)
    const vanishing = isVanishing ? ', the machine vanishes' : ''
    table[`${replication}${vanishing}${isPooled ? ', pgbouncer' : ''}`] = {
      ...load.figures(),
      ...lost,
    }
    console.table(table)
    expect(load.figures()).toMatchObject({ withoutRetryAfter: 0, refused: 0, erasedAnswered200: 0 })
    expect(load.figures().withRetryAfter, 'the failover was felt').toBeGreaterThan(0)
    if (replication === 'synchronous') expect(lost).toEqual(nothingLost)
    if (replication === behind) {
      expect(deployment.output(), 'the standby had brought people back').toContain(
        'ledger.erased_again',
      )
    }
    // An attempt of the worker may still wait for the machine that is gone, and is cut off.
    const codes = await deployment.stop()
    expect(isVanishing ? codes.slice(0, 2) : codes).toEqual(isVanishing ? [0, 0] : [0, 0, 0])
  },
)

interface Cluster {
  primary: InstalledPostgres
  standby: InstalledPostgres
  /** What a virtual address or HAProxy is elsewhere. */
  entrance: CuttingProxy
}

async function startCluster(): Promise<Cluster | undefined> {
  const primary = startInstalledPostgres()
  if (!primary) return undefined
  onTestFinished(primary.stop)
  const standby = primary.standby()
  onTestFinished(standby.stop)
  const entrance = await startCuttingProxy(addressOf(primary.url))
  onTestFinished(entrance.close)
  return { primary, standby, entrance }
}

/** From now on a commit waits until the standby shows it, or for the primary's disk alone. */
async function followBy(primary: InstalledPostgres, replication: Setting['replication']) {
  const { client, end } = await connectOne(addressOf(primary.url))
  if (replication === 'synchronous') {
    await client.query(`alter system set synchronous_standby_names = '*'`)
    await client.query(`alter system set synchronous_commit = 'remote_apply'`)
    await client.query('select pg_reload_conf()')
    await eventually(async () => {
      const { rows } = await client.query(
        `select from pg_stat_replication where sync_state = 'sync'`,
      )
      return rows.length === 1
    })
  }
  await end()
}

async function walSender(primary: InstalledPostgres): Promise<number> {
  const { client, end } = await connectOne(addressOf(primary.url))
  const { rows } = await client.query('select pid from pg_stat_replication')
  await end()
  return rows[0].pid
}

const freezeReplication = (pid: number) => process.kill(pid, 'SIGSTOP')

interface Deployment {
  urls: string[]
  project: TestProject
  output(): string
  stop(): Promise<(number | null)[]>
}

async function deploy(entrance: CuttingProxy, isPooled: boolean): Promise<Deployment> {
  const pooler = isPooled ? await startPgbouncer(entrance.address) : undefined
  if (pooler) onTestFinished(pooler.close)
  const { port, ...address } = entrance.address
  const url = urlOf({ ...address, port }).replace(/localhost(.*)\?.*/, '127.0.0.1$1')
  const env = await newEnvironment(undefined, {
    DATABASE_URL: pooler?.url ?? url,
    INGEST_LIMIT_PER_ADDRESS: '0',
    INGEST_LIMIT_PER_PROJECT: '0',
  })
  const services = [
    await startLethe(['serve', '--no-worker'], env, greeting),
    await startLethe(['serve', '--no-worker'], env, greeting),
  ]
  const all = [...services, await startLethe(['worker'], env, workerGreeting)]
  const db = connect({ connection: entrance.address })
  const project = await newProject(db)
  await db.end()
  return {
    urls: services.map(({ found }) => found),
    project,
    output: () => all.map((one) => one.output()).join(''),
    stop: () => Promise.all(all.map((one) => one.stop())),
  }
}

/** What was acknowledged of one person. */
interface Visit {
  externalId: string
  isCreated: boolean
  sessionId?: string
  isIdentified: boolean
  hasChunk: boolean
  /** Whether a DELETE was sent: it may have been carried out although no response said so. */
  isToGo: boolean
  jobId?: string
}

const isThere = ({ isIdentified, isToGo }: Visit) => isIdentified && !isToGo

function startLoad({ urls, project }: Deployment) {
  const figures = {
    creates: 0,
    identifications: 0,
    chunks: 0,
    deletes: 0,
    withRetryAfter: 0,
    withoutRetryAfter: 0,
    refused: 0,
    erasedAnswered200: 0,
    longestOutageSeconds: 0,
  }
  const visits: Visit[] = []
  /** Persons of whom it was said that they are erased. */
  const erased: string[] = []
  const watched: Visit[] = []
  let acknowledgedAt: number[] = []
  const uploads: Promise<void>[] = []
  let isOver = false
  let turn = 0

  const send = (path: string, key: string | null, options: RequestOptions) =>
    sendRaw(urls[turn++ % urls.length] as string, path, key, options)

  /** Sends it until it is done, as clients do. Undefined: it is refused, or the load is over. */
  async function insist(path: string, key: string | null, options: RequestOptions) {
    for (;;) {
      const answer = await send(path, key, options)
      if (answer.status < 300) {
        noteAcknowledged()
        return answer
      }
      const wait = Number(answer.headers.get('retry-after'))
      if (answer.status < 500 && !wait) return noteRefusal(answer)
      if (answer.status >= 500) figures[wait > 0 ? 'withRetryAfter' : 'withoutRetryAfter']++
      if (isOver) return undefined
      await sleep(200)
    }
  }

  function noteAcknowledged() {
    const now = Date.now()
    const last = acknowledgedAt.at(-1)
    if (last) {
      figures.longestOutageSeconds = Math.max(figures.longestOutageSeconds, (now - last) / 1_000)
    }
    acknowledgedAt = [...acknowledgedAt.slice(-20), now]
  }

  /** A person, browser or session that was lost is unknown, and the visit is over. */
  function noteRefusal({ status, text }: Answer): undefined {
    if (status === 404 || status === 410) return
    figures.refused++
    console.log(status, text)
  }

  const post = (path: string, query: Record<string, string>, rest: RequestOptions) =>
    insist(
      `/ingest/v1/${path}?${new URLSearchParams({ key: project.publicKey, ...query })}`,
      null,
      { method: 'POST', ...rest },
    )

  async function visit(externalId: string): Promise<void> {
    const visit: Visit = {
      externalId,
      isCreated: false,
      isIdentified: false,
      hasChunk: false,
      isToGo: false,
    }
    visits.push(visit)
    const created = await insist('/v1/persons', project.secretKey, {
      method: 'POST',
      body: { externalId },
    })
    if (!created) return
    visit.isCreated = true
    figures.creates++
    const started = await post('start', {}, { rawBody: '{}' })
    if (!started) return
    const { browserId, sessionId } = started.json
    const identified = await post(
      'identify',
      {},
      {
        rawBody: JSON.stringify({ browserId, userId: externalId }),
      },
    )
    if (identified?.json.next !== 'continue') return
    visit.sessionId = sessionId
    visit.isIdentified = true
    figures.identifications++
    // As in a page: what is recorded waits for nobody. One that was cut off is taken again after a minute.
    uploads.push(upload(visit, { browser: browserId, session: sessionId, tab: 'tab', number: '0' }))
  }

  async function upload(visit: Visit, place: Record<string, string>): Promise<void> {
    const stored = await post('chunks', place, {
      rawBody: events(1),
      headers: { 'content-type': 'application/octet-stream' },
    })
    if (stored?.json.next !== 'continue') return
    visit.hasChunk = true
    figures.chunks++
  }

  async function requestErasure(visit: Visit): Promise<void> {
    visit.isToGo = true
    const path = `/v1/persons/${visit.externalId}`
    const deleted = await insist(path, project.secretKey, { method: 'DELETE' })
    if (!deleted) return
    visit.jobId = deleted.json.job.id
    figures.deletes++
    watched.push(visit)
  }

  async function lane(number: number): Promise<void> {
    const own: Visit[] = []
    for (let n = 0; !isOver; n++) {
      const externalId = `person-${number}-${n}`
      await visit(externalId)
      own.push(visits.find((one) => one.externalId === externalId) as Visit)
      const old = n % 2 === 1 ? own.shift() : undefined
      if (old?.isIdentified) await requestErasure(old)
    }
  }

  async function watchJobs(): Promise<void> {
    while (!isOver) {
      for (const visit of [...watched]) {
        const { status, json } = await send(
          `/v1/deletion-jobs/${visit.jobId}`,
          project.secretKey,
          {},
        )
        if (status === 200 && json.job.status !== 'completed') continue
        if (status === 200) erased.push(visit.externalId)
        if (status < 500) watched.splice(watched.indexOf(visit), 1)
      }
      await sleep(20)
    }
  }

  async function lookForErased(): Promise<void> {
    while (!isOver) {
      for (const externalId of erased.slice(-200)) {
        const { status } = await send(`/v1/persons/${externalId}`, project.secretKey, {})
        if (status === 200) figures.erasedAnswered200++
        const search = `/v1/persons?search=${externalId}&limit=100`
        const { json } = await send(search, project.secretKey, {})
        const isFound = json?.persons?.some(
          (one: { externalId: string }) => one.externalId === externalId,
        )
        if (isFound) figures.erasedAnswered200++
      }
      await sleep(byDepth(20, 5))
    }
  }

  const running = Promise.all([
    ...Array.from({ length: lanes }, (_, number) => lane(number)),
    watchJobs(),
    lookForErased(),
    lookForErased(),
  ])
  // Said where the test waits for it.
  running.catch(() => {})
  return {
    visits,
    erased,
    figures: () => figures,
    acknowledgedSince: (time: number) => acknowledgedAt.filter((at) => at > time).length,
    stop() {
      isOver = true
      return running.then(() => Promise.all(uploads))
    },
  }
}

const nothingLost = {
  lostCreates: 0,
  lostIdentifications: 0,
  lostChunks: 0,
  lostDeletes: 0,
}

/** Waits for all jobs, and counts what was acknowledged and is not there. */
async function findLost({ urls, project }: Deployment, visits: Visit[]) {
  const lost = { ...nothingLost }
  const get = (path: string) =>
    eventually(async () => {
      const answer = await sendRaw(urls[0] as string, path, project.secretKey, {})
      return answer.status < 500 && answer
    })
  for (const { externalId, isCreated, sessionId, hasChunk, isToGo, jobId } of visits) {
    const person = `/v1/persons/${externalId}`
    if (jobId) {
      const job = await eventually(async () => {
        const { status, json } = await get(`/v1/deletion-jobs/${jobId}`)
        return status === 404 ? 'lost' : json.job.status === 'completed' && 'completed'
      })
      if (job === 'lost') lost.lostDeletes++
      else expect((await get(person)).status).toBe(404)
      continue
    }
    if (!isCreated || isToGo) continue
    const { status } = await get(person)
    if (status === 404) lost.lostCreates++
    if (!sessionId) continue
    const { json } = await get(`${person}/sessions`)
    const isLinked = json?.sessions?.some(({ id }: { id: string }) => id === sessionId)
    if (!isLinked) lost.lostIdentifications++
    if (!hasChunk) continue
    const recorded = await get(`/v1/sessions/${sessionId}/events`)
    if (recorded.status !== 200 || recorded.text === '') lost.lostChunks++
  }
  return lost
}
