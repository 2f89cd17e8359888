import type { Db, Sql } from '../sql.ts'
import { isFaultOfRow, together } from '../together.ts'
import { type PersonWrite, type PersonWritten, writePersons } from './store.ts'

/** A larger body takes the database long enough to delay what is written together with it. */
const bodyBytesMaximum = 16_384

/** Writes alone that run at the same time, each on a connection of the pool. */
const aloneAtOnce = 3

const lockTimedOut = '55P03'

interface Waiting {
  mode: 'together' | 'alone'
  write: PersonWrite
  done: (written: PersonWritten) => void
  failed: (error: unknown) => void
}

/**
 * Writes persons in one of two modes. Small writes go together. (Without it, POST reaches a third of
 * what it does with 32 clients.) A statement waits for no row that another transaction has locked; a
 * write that found one, or that has a large body, or that made its statement fail, goes alone.
 *
 * Of one person at most one write is alone at a time, and the later ones wait for its end: a locked
 * row takes one connection, however many writes want it.
 */
export function personWriter(db: Pick<Db, 'sql' | 'begin'>) {
  const alone: Waiting[] = []
  /** By person, the writes that wait for the one alone. */
  const behind = new Map<string, Waiting[]>()
  let aloneRunning = 0

  const writeTogether = together<PersonWrite, PersonWritten>({
    work: (writes) => writeParts(db, writes),
    order: byPerson,
  })

  function addAlone(one: Waiting): void {
    const waiting = behind.get(personOf(one))
    if (waiting) {
      waiting.push(one)
      return
    }
    behind.set(personOf(one), [])
    alone.push(one)
    if (aloneRunning < aloneAtOnce) void runAlone()
  }

  async function runAlone(): Promise<void> {
    aloneRunning++
    for (let one = alone.shift(); one; one = alone.shift()) await writeAlone(one)
    aloneRunning--
  }

  async function writeAlone(one: Waiting): Promise<void> {
    const person = personOf(one)
    try {
      const [written] = await writePersons(db.sql, one.write.projectId, [one.write], {
        skipLocked: false,
      })
      one.done(written as PersonWritten)
    } catch (error) {
      one.failed(error)
      // The later ones have waited for the same lock; each in turn would wait as long again.
      if ((error as { code?: unknown }).code === lockTimedOut) {
        for (const later of behind.get(person)?.splice(0) ?? []) later.failed(error)
      }
    }
    const later = behind.get(person) ?? []
    behind.delete(person)
    later.forEach(add)
  }

  function add(one: Waiting): void {
    if (one.mode === 'alone' || behind.has(personOf(one))) {
      addAlone(one)
      return
    }
    writeTogether(one.write).then(
      (written) => (written.outcome === 'locked' ? addAlone(one) : one.done(written)),
      (error) => (isFaultOfRow(error) ? addAlone(one) : one.failed(error)),
    )
  }

  return (write: PersonWrite, bodyBytes: number): Promise<PersonWritten> =>
    new Promise((done, failed) => {
      const mode = bodyBytes > bodyBytesMaximum ? 'alone' : 'together'
      add({ mode, write, done, failed })
    })
}

const personOf = ({ write }: Waiting) => `${write.projectId} ${write.externalId}`

function byPerson(a: PersonWrite, b: PersonWrite): number {
  if (a.projectId !== b.projectId) return a.projectId - b.projectId
  return a.externalId < b.externalId ? -1 : a.externalId > b.externalId ? 1 : 0
}

/** Of writes in the order of their projects: a statement for each, with one commit; most are of one. */
function writeParts(
  db: Pick<Db, 'sql' | 'begin'>,
  writes: PersonWrite[],
): Promise<PersonWritten[]> {
  const projects = [...new Set(writes.map(({ projectId }) => projectId))]
  const writeAll = async (sql: Sql) => {
    const written: PersonWritten[] = []
    for (const id of projects) {
      const its = writes.filter(({ projectId }) => projectId === id)
      written.push(...(await writePersons(sql, id, its, { skipLocked: true })))
    }
    return written
  }
  return projects.length === 1 ? writeAll(db.sql) : db.begin(writeAll)
}
