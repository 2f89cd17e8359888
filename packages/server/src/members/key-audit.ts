import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { addressRangeOf } from '../http/network.ts'
import type { Db } from '../sql.ts'
import { type NoteOfProject, writeAuditOfDeletions, writeAuditOfWatching } from './audit-store.ts'

/** The routes of the server API that write to the audit log, by operation id. */
const audited: Record<string, (route: RouteOptions, db: Db) => void> = {
  deletePerson: auditDeletions,
  requestDeletions: auditDeletions,
  getReceipt: auditReceipts,
  readSessionEvents: auditWatching,
}

/** Logs actions of a key that would be logged for a member, before the response is sent. */
export function auditKeys(scope: FastifyInstance, db: Db): void {
  scope.addHook('onRoute', (route) => {
    const { operationId = '' } = (route.schema ?? {}) as { operationId?: string }
    audited[operationId]?.(route, db)
  })
}

interface Requested {
  job?: { id: string; keepRecordings: boolean }
  results?: { job?: { id: string } }[]
}

function auditDeletions(route: RouteOptions, { sql }: Db): void {
  route.preSerialization = async (request: FastifyRequest, reply: unknown, payload: unknown) => {
    if ((reply as { statusCode: number }).statusCode !== 202) return payload
    const { job, results = [] } = payload as Requested
    const jobs = job ? [job] : results.flatMap((one) => (one.job ? [one.job] : []))
    const note = { ...actorOf(request), action: 'person.deletion_requested' } as const
    await writeAuditOfDeletions(
      sql,
      jobs.map(({ id }) => id),
      note,
    )
    return payload
  }
}

function auditReceipts(route: RouteOptions, { sql }: Db): void {
  route.onSend = async (request: FastifyRequest, reply: unknown, payload: unknown) => {
    const { statusCode } = reply as { statusCode: number }
    if (request.method !== 'GET' || statusCode !== 200) return payload
    const { id } = request.params as { id: string }
    await writeAuditOfDeletions(sql, [id], { ...actorOf(request), action: 'receipt.downloaded' })
    return payload
  }
}

function auditWatching(route: RouteOptions, { sql }: Db): void {
  route.preHandler = async (request: FastifyRequest) => {
    if (request.method !== 'GET') return
    const { id } = request.params as { id: string }
    await writeAuditOfWatching(sql, id, actorOf(request))
  }
}

function actorOf(request: FastifyRequest): Omit<NoteOfProject, 'action'> {
  const { projectId, keyId, ip } = request
  return { memberId: null, keyId, addressRange: addressRangeOf(ip), projectId }
}
