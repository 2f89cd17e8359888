import { type Answer, readAnswer, unanswered } from './answer.ts'
import type { Platform } from './platform.ts'

export type Query = Record<string, string | number>
export type Body = string | Uint8Array<ArrayBuffer>

/** The ingestion endpoints as seen from here. It never rejects: no answer is an answer too. */
export interface Server {
  post(endpoint: string, body: Body, query?: Query): Promise<Answer>
  beacon(endpoint: string, body: Body, query?: Query): boolean
}

/** The key travels in the query, where it needs no preflight. */
export function createServer(platform: Platform, host: string, key: string): Server {
  const urlOf = (endpoint: string, query: Query = {}) => {
    const parameters = Object.entries({ key, ...query })
    const text = parameters.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
    return `${host}/ingest/v1/${endpoint}?${text}`
  }
  return {
    async post(endpoint, body, query) {
      try {
        return await readAnswer(await platform.fetch(urlOf(endpoint, query), body))
      } catch {
        return unanswered
      }
    },
    beacon(endpoint, body, query) {
      try {
        return platform.beacon(urlOf(endpoint, query), body)
      } catch {
        return false
      }
    },
  }
}
