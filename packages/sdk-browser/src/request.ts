import { type Answer, backoff, readAnswer, unanswered } from './answer.ts'
import { type Body, type Platform, pause } from './platform.ts'

export type Query = Record<string, string | number>

/** The ingestion endpoints as seen from here. It never rejects: no response is a result too. */
export interface Server {
  /** The key travels in the query, where it needs no preflight. */
  url(endpoint: string, query?: Query): string
  post(endpoint: string, body: Body, query?: Query): Promise<Answer>
  /** Asks until there is a response to act on; nothing once the page is done with. */
  ask(endpoint: string, body: object, waiting?: () => void): Promise<Answer | undefined>
}

export function createServer(
  { platform, host, key }: { platform: Platform; host: string; key: string },
  halted: () => unknown,
): Server {
  const url = (endpoint: string, query: Query = {}) =>
    `${host}/ingest/v1/${endpoint}?${new URLSearchParams({ key, ...query } as Record<string, string>)}`
  const post = async (endpoint: string, body: Body, query?: Query) => {
    try {
      return await readAnswer(await platform.fetch(url(endpoint, query), body))
    } catch {
      return unanswered
    }
  }
  return {
    url,
    post,
    async ask(endpoint, body, waiting) {
      for (let failures = 1; ; failures++) {
        const answer = await post(endpoint, JSON.stringify(body))
        if (halted()) return undefined
        if (answer.next !== 'retry') return answer
        waiting?.()
        await pause(platform, backoff(failures, answer.retrySeconds, platform.random()))
        if (halted()) return undefined
      }
    },
  }
}
