import type { Facts, Row } from './world.ts'

/*
 * What must hold after every schedule, checked against facts alone. This shares no code with the
 * product, neither its SQL nor its listing of blobs.
 */

export interface Allowances {
  /** Only erasures delete rows of recordings, so their counts are exact. */
  areCountsExact?: boolean
  /** A process died in an upload to a bucket: the blob may stay, sealed with a destroyed key. */
  mayLeaveSealed?: boolean
  /** An upload may put its blob after its row was collected, and then deletes it itself. */
  mayPutLate?: boolean
  /** Attempts may be handed back. */
  mayHandBack?: boolean
  /** Attempts are made to fail, so jobs may fail. */
  mayFail?: boolean
  /** The retention deletes recordings too. */
  mayExpire?: boolean
  /** The retention deletes people whom only identify created. */
  mayExpirePersons?: boolean
  /** A session is packed: its chunks may be in a pack. What it replaced is deleted after a day. */
  mayPack?: boolean
  /** A statement pauses while time passes, so it may write what it decided before. */
  mayStandStill?: boolean
  /** Retry delays need not be kept: the ledger continues at once. */
  mayHurry?: boolean
}

/** Throws for the first rule that is broken. */
export function checkAlways(planted: Facts, facts: Facts, allowances: Allowances): void {
  checkJobs(facts, allowances)
  checkFlags(facts)
  checkLedger(facts)
  if (!allowances.mayExpire) checkFences(facts)
  checkRetirement(planted, facts)
  for (const job of facts.jobs) {
    if (job.status === 'completed') checkCompleted(planted, facts, job, allowances)
  }
  checkFiles(facts, allowances)
  checkBystanders(planted, facts)
}

/** What must also hold when every process works again and nothing is left to do. */
export function checkAtRest(facts: Facts, allowances: Allowances): void {
  for (const job of facts.jobs) {
    const ends = allowances.mayFail ? ['completed', 'failed'] : ['completed']
    must(ends.includes(job.status), `a job ended as ${job.status}`)
  }
  for (const chunk of facts.chunks) {
    must(chunk.state === 'stored', `a chunk ended as ${chunk.state}`)
    must(facts.files.has(chunk.blob_key), 'a stored chunk has no blob')
  }
  const keys = new Set(facts.keys.map((key) => key.browser_id))
  const browsers = new Set(facts.browsers.map((browser) => browser.id))
  const failed = facts.jobs.some((job) => job.status === 'failed')
  for (const browser of facts.browsers) {
    must(failed || keys.has(browser.id), 'a browser has no key')
  }
  for (const key of facts.keys) must(browsers.has(key.browser_id), 'a key has no browser')
}

function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise)
}

const ranks: Record<string, number> = { pending: 0, running: 1, completed: 2, failed: 2 }

function checkJobs({ history, jobs, attempts }: Facts, allowances: Allowances): void {
  for (const { op, at, old: before, new: after } of ofPlace(history, 'deletion_jobs')) {
    must(op !== 'DELETE' && after !== null, 'a job was deleted')
    if (!before) continue
    if (!allowances.mayHurry) checkLease(at, before, after, attempts, allowances)
    const [from, to] = [ranks[before.status] as number, ranks[after.status] as number]
    must(from <= to, `a job went from ${before.status} to ${after.status}`)
    must(from < 2 || same(before, after), 'an ended job was changed')
    const isBack = after.attempts === before.attempts - 1 && allowances.mayHandBack === true
    must(after.attempts >= before.attempts || isBack, 'an attempt was not counted')
    must(
      !before.started_at || before.started_at === after.started_at || isBack,
      'startedAt was changed',
    )
    must(before.created_at === after.created_at, 'createdAt was changed')
    must(before.external_id === after.external_id, 'externalId was changed')
  }
  for (const job of jobs) {
    must(job.attempts >= 0 && job.attempts <= 5, `a job had ${job.attempts} attempts`)
    must((job.status === 'completed') === (job.completed_at !== null), 'completedAt is wrong')
    must(
      job.status !== 'running' || job.attempts >= 1 || allowances.mayHandBack === true,
      'a running job has no attempt',
    )
    const mine = attempts.filter((attempt) => attempt.job_id === job.id)
    must(mine.length === job.attempts, `${mine.length} rows of ${job.attempts} attempts`)
    if (allowances.mayHurry || allowances.mayHandBack) continue
    mine.slice(1).forEach((attempt, index) => {
      const rest = Date.parse(attempt.started_at) - Date.parse(mine[index]?.ended_at)
      const delay = [30, 60, 120, 240][index] as number
      must(rest >= delay * 1_000, `attempt ${attempt.number} began only ${rest} ms later`)
    })
  }
}

/**
 * Only the holder of a lease renews it, or completes or fails the job, and a lease is lost only
 * after it expired.
 */
function checkLease(
  at: string,
  before: Row,
  after: Row,
  attempts: Row[],
  { mayStandStill = false }: Allowances,
): void {
  if (before.lease_token === null) return
  const isHeld = Date.parse(before.lease_until) > Date.parse(at)
  if (after.lease_token === before.lease_token) {
    const isSame = after.lease_until === before.lease_until
    must(isHeld || isSame || mayStandStill, 'an expired lease was renewed')
    return
  }
  must(after.lease_token === null, 'a job was claimed that another worker held')
  if (after.attempts < before.attempts) {
    // The attempt that has this number at the end is a later one.
    must(isHeld, 'an attempt was handed back after its lease expired')
    return
  }
  if (after.status === 'completed') must(isHeld, 'a job was completed after its lease expired')
  const { outcome } =
    attempts.find((one) => one.job_id === after.id && one.number === before.attempts) ?? {}
  if (outcome === 'failed') must(isHeld, 'an attempt failed after its lease expired')
  if (outcome === 'lost') must(!isHeld, 'a lease was lost before it expired')
}

/** A worker changes something only while it holds a job. */
function checkFences({ history }: Facts): void {
  const holders = new Map<string, number>()
  const workers = new Set<number>()
  for (const { pid, place, op, old: before, new: after } of history) {
    if (place === 'deletion_jobs' && before && after) {
      const isCounted = countedOf(before) === countedOf(after)
      must(isCounted || holders.get(after.id) === pid, 'a worker without the job counted')
      if (after.lease_token === null) holders.delete(after.id)
      else if (after.lease_token !== before.lease_token) {
        holders.set(after.id, pid)
        workers.add(pid)
      }
    }
    if (op !== 'DELETE' || !workers.has(pid) || place === 'chunks') continue
    must([...holders.values()].includes(pid), `a worker that lost its job deleted ${place}`)
  }
}

const countedOf = (job: Row) =>
  [job.removed_sessions, job.removed_chunks, job.removed_browsers, job.removed_blobs].join()

/** A person is flagged with a job exactly while the job is open, and has at most one open job. */
function checkFlags({ persons, jobs, history }: Facts): void {
  for (const { old: before, new: after } of ofPlace(history, 'persons')) {
    if (!before?.deletion_job_id || !after) continue
    const isSame = JSON.stringify(before.properties) === JSON.stringify(after.properties)
    must(isSame, 'a person being deleted was changed')
  }
  const open = jobs.filter((job) => job.status === 'pending' || job.status === 'running')
  for (const job of open) {
    const person = persons.find(
      (one) => one.project_id === job.project_id && one.id === job.person_id,
    )
    must(person?.deletion_job_id === job.id, 'the person of an open job is not flagged with it')
  }
  for (const person of persons) {
    const flag = person.deletion_job_id
    must(
      flag === null || open.some((job) => job.id === flag),
      'a flag names a job that is not open',
    )
  }
}

/** A retired browser gets no session, chunk or person; a closed session gets no chunk. */
function checkRetirement(planted: Facts, { history, persons, links, browsers }: Facts): void {
  const retired = new Set<string>()
  const closed = new Set<string>()
  const sessions = new Map<string, string>(planted.sessions.map((one) => [one.id, one.browser_id]))
  for (const { place, op, new: row } of history) {
    if (row === null) continue
    if (place === 'browsers' && row.retired) retired.add(row.id)
    if (place === 'sessions') sessions.set(row.id, row.browser_id)
    if (place === 'sessions' && row.closed) closed.add(row.id)
    if (op !== 'INSERT') continue
    if (place === 'sessions') must(!retired.has(row.browser_id), 'a retired browser got a session')
    if (place === 'person_browsers') {
      must(!retired.has(row.browser_id), 'a retired browser was linked')
    }
    if (place === 'chunks') {
      const browserId = sessions.get(row.session_id)
      must(browserId !== undefined && !retired.has(browserId), 'a retired browser got a chunk')
      must(!closed.has(row.session_id), 'a closed session got a chunk')
    }
  }
  for (const link of links) {
    const person = persons.find((one) => one.id === link.person_id)
    const browser = browsers.find((one) => one.id === link.browser_id)
    must(person !== undefined && browser !== undefined, 'a link leads nowhere')
  }
}

/** Compared entries are not compared again, so no open entry may be among them. */
function checkLedger({ ledger, ledgerState, jobs }: Facts): void {
  const [state] = ledgerState
  for (const { job_id, number, state: entryState } of ledger) {
    must(number <= state?.last_number, 'an entry has a number that was not assigned')
    must(entryState !== 'open' || number > state?.compared_to, 'an open entry counts as compared')
    const job = jobs.find((one) => one.id === job_id)
    const isOver = job?.status === 'completed' || job?.status === 'failed'
    must(isOver === (entryState !== 'open'), 'an entry is open and its job is not, or the reverse')
  }
}

function checkCompleted(planted: Facts, facts: Facts, job: Row, allowances: Allowances): void {
  const personId = personOf(planted, facts, job)
  must(!facts.persons.some((one) => one.id === personId), 'a completed job left its person')
  must(!facts.links.some((one) => one.person_id === personId), 'a completed job left a link')
  const browserIds = everLinked(planted, facts, personId)
  const sessionIds = sessionsOf(planted, facts, browserIds)
  if (job.keep_recordings) checkKept(planted, facts, browserIds, allowances)
  else checkGone(facts, job, browserIds, sessionIds, allowances)
  checkProofs(facts, job, personId, job.keep_recordings ? [] : browserIds, allowances)
}

function checkGone(
  facts: Facts,
  job: Row,
  browserIds: string[],
  sessionIds: string[],
  allowances: Allowances,
): void {
  const left = {
    browsers: facts.browsers.filter((one) => browserIds.includes(one.id)),
    keys: facts.keys.filter((one) => browserIds.includes(one.browser_id)),
    sessions: facts.sessions.filter((one) => browserIds.includes(one.browser_id)),
    chunks: facts.chunks.filter((one) => sessionIds.includes(one.session_id)),
    blobs: [...facts.files.keys()].filter(
      (key) => !allowances.mayLeaveSealed && browserIds.some((id) => key.includes(id)),
    ),
  }
  for (const [name, rows] of Object.entries(left)) {
    must(rows.length === 0, `a completed job left ${rows.length} ${name}`)
  }
  if (!allowances.areCountsExact) return
  const deleted = (place: string, isMine: (row: Row) => boolean) =>
    ofPlace(facts.history, place).filter((one) => one.op === 'DELETE' && isMine(one.old as Row))
      .length
  const counted = [job.removed_sessions, job.removed_chunks, job.removed_browsers].join()
  const expected = [
    deleted('sessions', (row) => browserIds.includes(row.browser_id)),
    deleted('chunks', (row) => sessionIds.includes(row.session_id)),
    deleted('browsers', (row) => browserIds.includes(row.id)),
  ].join()
  must(counted === expected, `removed sessions, chunks, browsers: ${counted}, not ${expected}`)
}

/** Kept recordings stay complete, and are linked to nobody. */
function checkKept(
  planted: Facts,
  facts: Facts,
  browserIds: string[],
  allowances: Allowances,
): void {
  for (const id of browserIds) {
    const browser = facts.browsers.find((one) => one.id === id)
    must(
      browser?.retired === true || allowances.mayExpire === true,
      'a kept browser is not retired',
    )
    must(!facts.links.some((link) => link.browser_id === id), 'a kept browser is still linked')
  }
  if (allowances.mayExpire || allowances.mayPack) return
  for (const place of ['keys', 'sessions', 'chunks'] as const) {
    const isMine = (row: Row) =>
      browserIds.includes(row.browser_id) ||
      sessionsOf(planted, facts, browserIds).includes(row.session_id)
    for (const row of planted[place].filter(isMine)) {
      const isThere = facts[place].some(
        (one) => idOf(one) === idOf(row) && (place !== 'chunks' || one.state === row.state),
      )
      must(isThere, `kept ${place} are gone`)
    }
  }
  for (const key of planted.files.keys()) {
    if (!browserIds.some((id) => key.includes(id))) continue
    must(facts.files.has(key), 'a kept blob is gone')
  }
}

const idOf = (row: Row) => `${row.id ?? row.blob_key ?? row.browser_id}`

function checkProofs(
  facts: Facts,
  job: Row,
  personId: string,
  browserIds: string[],
  allowances: Allowances,
): void {
  const key = [...facts.files.keys()].find((one) => one.endsWith(`-${job.id}.jws`))
  must(key !== undefined, 'a completed job is not in the ledger')
  const [, payload] = String(facts.files.get(key)).split('.')
  const entry = JSON.parse(Buffer.from(payload as string, 'base64url').toString())
  const row = facts.ledger.find((one) => one.job_id === job.id)
  must(row?.state === 'completed', 'the entry of a completed job is not completed in the database')
  must(key.includes(`/${row.number}-`), 'the entry has another number in the database')
  must(entry.personId === personId, 'the ledger names another person')
  // Browsers that the retention deleted before are not named.
  const areNamed =
    allowances.mayExpire === true || browserIds.every((id) => entry.browserIds.includes(id))
  const areTheirs = entry.browserIds.every((id: string) => browserIds.includes(id))
  must(areNamed && areTheirs, 'the ledger names other browsers')
  const receipts = facts.receipts.filter((one) => one.project_id === job.project_id)
  must(receipts.filter((one) => one.job_id === job.id).length === 1, 'a job has not one receipt')
  receipts.forEach((one, index) => {
    must(Number(one.number) === index + 1, 'a receipt is missing in the chain')
  })
}

/** Every blob has its row at all times: otherwise nobody would find it. */
function checkFiles(facts: Facts, allowances: Allowances): void {
  const known = new Set(facts.chunks.map((chunk) => chunk.blob_key))
  const keys = new Set(facts.keys.map((key) => key.browser_id))
  for (const key of facts.files.keys()) {
    if (key.startsWith('ledger/') || known.has(key)) continue
    const browserId = key.split('/')[2] as string
    const isSealed = allowances.mayLeaveSealed === true && !keys.has(browserId)
    must(isSealed, 'a blob has no row')
  }
}

/** The people called `bystander`, in both projects, are unchanged, byte for byte. */
function checkBystanders(planted: Facts, facts: Facts): void {
  const before = bystanders(planted)
  const after = bystanders(facts)
  must(before.length > 0 && before === after, 'a bystander was changed')
}

function bystanders(facts: Facts): string {
  const mine = facts.persons.filter((one) => one.external_id === 'bystander')
  const ids = new Set(mine.map((one) => one.id))
  const browserIds = new Set(
    facts.links.filter((one) => ids.has(one.person_id)).map((one) => one.browser_id),
  )
  const sessions = facts.sessions.filter((one) => browserIds.has(one.browser_id))
  const sessionIds = new Set(sessions.map((one) => one.id))
  const rows = [
    ...mine,
    ...facts.links.filter((one) => ids.has(one.person_id)),
    ...facts.browsers.filter((one) => browserIds.has(one.id)),
    ...facts.keys.filter((one) => browserIds.has(one.browser_id)),
    ...sessions,
    ...facts.chunks.filter((one) => sessionIds.has(one.session_id)),
  ].map((row) => JSON.stringify(row))
  const blobs = [...facts.files]
    .filter(([key]) => [...browserIds].some((id) => key.includes(id)))
    .map(([key, bytes]) => `${key} ${bytes.toString('base64')}`)
  if (mine.length === 0) return ''
  return [...rows, ...blobs].sort().join('\n')
}

function ofPlace(history: Facts['history'], place: string) {
  return history.filter((one) => one.place === place)
}

function personOf(planted: Facts, facts: Facts, job: Row): string {
  const rows = [
    ...planted.jobs.filter((one) => one.id === job.id),
    ...ofPlace(facts.history, 'deletion_jobs')
      .map((one) => one.new as Row)
      .filter((one) => one.id === job.id),
  ]
  return rows.find((one) => one.person_id !== null)?.person_id
}

/** Returns the browsers that were ever linked to this person. */
function everLinked(planted: Facts, facts: Facts, personId: string): string[] {
  const rows = [
    ...planted.links,
    ...ofPlace(facts.history, 'person_browsers').flatMap((one) => (one.new ? [one.new] : [])),
  ]
  const ids = rows.filter((row) => row.person_id === personId).map((row) => row.browser_id)
  return [...new Set(ids)]
}

function sessionsOf(planted: Facts, facts: Facts, browserIds: string[]): string[] {
  const rows = [
    ...planted.sessions,
    ...ofPlace(facts.history, 'sessions').flatMap((one) => (one.new ? [one.new] : [])),
  ]
  return [...new Set(rows.filter((row) => browserIds.includes(row.browser_id)).map(idOf))]
}

const same = (one: Row, other: Row) => JSON.stringify(one) === JSON.stringify(other)
