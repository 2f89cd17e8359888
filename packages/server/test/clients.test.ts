import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import axios from 'axios'
import got from 'got'
import { request as undici } from 'undici'
import { afterAll, describe, expect } from 'vitest'
import { requestDeletion } from '../src/erasure/request.ts'
import { newKeyText } from '../src/projects/key-text.ts'
import { tokenBuckets } from '../src/projects/rate-limit.ts'
import type { Db } from '../src/sql.ts'
import { type Service, startService, type TestProject } from './fixtures.ts'
import { isDeep } from './proof/deep.ts'
import { test as base, type IngestService, startIngesting } from './recordings-fixtures.ts'
import { runsHere } from './s3-servers/start.ts'

interface Outgoing {
  method: string
  url: string
  headers: Record<string, string>
  /** What the body begins with; spaces follow. */
  start: string
  bytes: number
}

const tooLarge = 8_000_000
/** As large as a body may be: what is refused only once it has been read. */
const largest = 1_048_576

/** Sends the bodies as this client does by itself, and gives the statuses it saw: 0 where it saw none. */
type Client = (requests: Outgoing[]) => Promise<number[]>

/** A client that sends one request at a time. */
const each =
  (send: (request: Outgoing) => Promise<number>): Client =>
  async (requests) => {
    const statuses: number[] = []
    for (const request of requests) statuses.push(await send(request).catch(() => 0))
    return statuses
  }

const run = promisify(execFile)
const isCI = process.env.CI === 'true'

/** Whether the client can be run; where it cannot, that is said, and in CI it is a failure. */
function isThere(name: string, debianPackage: string, command: string, ...probe: string[]) {
  const works = spawnSync(command, probe).status === 0
  return runsHere(name, works ? [] : [debianPackage], isCI).runs
}

/** The one that Debian's packages are for, where there is another before it in the path. */
const pythonProgram = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3'

function bodyOf({ start, bytes }: Outgoing): Buffer {
  return Buffer.from(start.padEnd(bytes))
}

/** Of a program that sends them all: to start it takes longer than to send. */
async function printed(command: string, args: string[], requests: Outgoing[]) {
  const env = { ...process.env, GIVEN: JSON.stringify(requests) }
  const { stdout } = await run(command, args, { env })
  return stdout.trim().split('\n').map(Number)
}

const python = (imports: string, send: string) =>
  `import json, os${imports}
def send(method, url, headers, body):
${send.replace(/^/gm, '  ')}
for given in json.loads(os.environ['GIVEN']):
  body = given['start'].ljust(given['bytes']).encode()
  try:
    print(send(given['method'], given['url'], given['headers'], body))
  except Exception:
    print(0)`

const urllib = python(
  ', urllib.request, urllib.error',
  `request = urllib.request.Request(url, data=body, headers=headers, method=method)
try:
  return urllib.request.urlopen(request).status
except urllib.error.HTTPError as error:
  return error.code`,
)
const requests = python(
  ', requests',
  'return requests.request(method, url, data=body, headers=headers).status_code',
)
const httpx = python(
  ', httpx',
  'return httpx.request(method, url, content=body, headers=headers).status_code',
)

const go = `package main
import ("bytes"; "encoding/json"; "fmt"; "net/http"; "os")
func main() {
  var all []struct { Method, Url, Start string; Headers map[string]string; Bytes int }
  json.Unmarshal([]byte(os.Getenv("GIVEN")), &all)
  for _, given := range all {
    body := bytes.Repeat([]byte(" "), given.Bytes)
    copy(body, given.Start)
    request, _ := http.NewRequest(given.Method, given.Url, bytes.NewReader(body))
    for name, value := range given.Headers { request.Header.Set(name, value) }
    answer, err := http.DefaultClient.Do(request)
    if err != nil { fmt.Println(0); continue }
    fmt.Println(answer.StatusCode)
  }
}`

const clients: Record<string, Client> = {
  "Node's fetch": each(async (request) => {
    const { method, url, headers } = request
    return (await fetch(url, { method, headers, body: bodyOf(request) })).status
  }),
  ...(isThere('curl', 'curl', 'curl', '--version') && {
    curl: each(async (request) => {
      const { method, url, headers } = request
      const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
      const args = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '-X', method, ...given]
      const running = run('curl', [...args, '--data-binary', '@-', url])
      running.child.stdin?.on('error', () => {}).end(bodyOf(request))
      return Number((await running).stdout)
    }),
  }),
  ...(isThere("Python's urllib", 'python3', pythonProgram, '--version') && {
    "Python's urllib": (requests) => printed(pythonProgram, ['-c', urllib], requests),
  }),
  ...(isDeep && {
    axios: each(async (request) => {
      const { method, url, headers } = request
      const sent = { method, url, headers, data: bodyOf(request), validateStatus: () => true }
      return (await axios.request(sent)).status
    }),
    undici: each(async (request) => {
      const { method, url, headers } = request
      const answer = await undici(url, { method, headers, body: bodyOf(request) } as never)
      await answer.body.dump()
      return answer.statusCode
    }),
    got: each(async (request) => {
      const { method, url, headers } = request
      const sent = { method: method as 'POST', headers, body: bodyOf(request), allowGetBody: true }
      return (await got(url, { ...sent, throwHttpErrors: false, retry: { limit: 0 } })).statusCode
    }),
  }),
  ...(isDeep &&
    isThere("Python's requests", 'python3-requests', pythonProgram, '-c', 'import requests') && {
      requests: (all) => printed(pythonProgram, ['-c', requests], all),
    }),
  ...(isDeep &&
    isThere("Python's httpx", 'python3-httpx', pythonProgram, '-c', 'import httpx') && {
      httpx: (all) => printed(pythonProgram, ['-c', httpx], all),
    }),
  ...(isDeep && isThere("Go's net/http", 'golang-go', 'go', 'version') && { Go: goClient() }),
}

/** Compiled once, as `go run` takes seconds. */
function goClient(): Client {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-go-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  let compiled: Promise<string> | undefined
  const compile = async () => {
    const [source, program] = [join(folder, 'main.go'), join(folder, 'client')]
    writeFileSync(source, go)
    await run('go', ['build', '-o', program, source])
    return program
  }
  return async (requests) => {
    compiled ??= compile()
    return printed(await compiled, [], requests)
  }
}

const test = base.extend<{ ingesting: IngestService; limited: Service; held: Service }>({
  ingesting: async ({ recordings, address, project }, use) => {
    const service = await startIngesting(recordings, address, project)
    await use(service)
    await service.close()
  },
  held: async ({ db, address, project }, use) => {
    const service = await startService(db, address, project, {
      held: { isHeld: () => true, holds: () => 1 },
    })
    await use(service)
    await service.close()
  },
  limited: async ({ db, address, project }, use) => {
    // One request and then none for a day.
    const service = await startService(db, address, project, {
      rateLimit: tokenBuckets(1 / 86_400, 1),
    })
    await service.send('/v1/persons')
    await use(service)
    await service.close()
  },
})

type Refusal = [status: number, request: Partial<Outgoing> & { url: string }]

/** Every kind of refusal, with a body as large as it can have. */
async function refusals(
  service: IngestService,
  { limited, held, project, db }: { limited: Service; held: Service; project: TestProject; db: Db },
): Promise<Refusal[]> {
  const { url, send } = service
  const persons = `${url}/v1/persons`
  await send('/v1/persons', { method: 'POST', body: { externalId: 'going' } })
  await requestDeletion(db, {
    projectId: project.id,
    externalId: 'going',
    keepRecordings: false,
    requestedBy: 'command',
  })
  const json = { 'content-type': 'application/json' }
  const bytes = { 'content-type': 'application/octet-stream' }
  const bearer = (key: string) => ({ ...json, authorization: `Bearer ${key}` })
  const headers = bearer(project.secretKey)
  const chunks = `${url}/ingest/v1/chunks`
  return [
    [400, { url: persons, headers, bytes: largest }],
    [400, { method: 'DELETE', url: `${persons}/going`, headers }],
    [401, { url: persons, headers: bearer(newKeyText('secret')) }],
    [403, { url: persons, headers: bearer(project.publicKey) }],
    [404, { url: `${url}/v1/nothing`, headers }],
    [404, { url: `${url}/nothing`, headers: json }],
    [405, { method: 'PUT', url: persons, headers }],
    [409, { url: persons, headers, bytes: largest, start: '{"externalId":"going"}' }],
    [413, { url: persons, headers }],
    [415, { url: persons, headers: { ...headers, 'content-type': 'text/csv' } }],
    [417, { url: persons, headers: { ...headers, expect: 'a-wonder' } }],
    [429, { url: `${limited.url}/v1/persons`, headers }],
    [503, { url: `${held.url}/v1/persons`, headers }],
    [401, { url: chunks, headers: json }],
    [403, { url: `${chunks}?key=${project.secretKey}`, headers: bytes }],
    [413, { url: `${chunks}?key=${project.publicKey}`, headers: bytes }],
    [415, { url: `${chunks}?key=${project.publicKey}`, headers: { 'content-type': 'text/csv' } }],
  ]
}

/** Those that send no Expect of their caller, and that say themselves when their connection ends. */
const withoutExpect = new Set(["Node's fetch", 'undici'])

const tries = isDeep ? 20 : 1

describe('the status of a refusal arrives while the body is still being sent', () => {
  for (const [name, send] of Object.entries(clients)) {
    test(
      `at ${name}`,
      async ({ ingesting, limited, held, project, db }) => {
        const all = await refusals(ingesting, { limited, held, project, db })
        const endings: Record<string, string>[] = [{}]
        if (name !== "Node's fetch") endings.push({ connection: 'close' })
        const seen: Record<string, number> = {}
        const expected: Record<string, number> = {}
        for (const ending of Array.from({ length: tries }, () => endings).flat()) {
          const tried = all.filter(
            ([, { headers }]) => !(headers?.expect && withoutExpect.has(name)),
          )
          const requests = tried.map(([, given]) => {
            const headers = { ...given.headers, ...ending }
            return { method: 'POST', start: '', bytes: tooLarge, ...given, headers }
          })
          const statuses = await send(requests)
          for (const [at, [status]] of tried.entries()) {
            const { method, url } = requests[at] as Outgoing
            const of = `${status} ${method} ${new URL(url).pathname}`
            expected[of] = (expected[of] ?? 0) + 1
            const saw = statuses[at] === status ? of : `${of}, but saw ${statuses[at]}`
            seen[saw] = (seen[saw] ?? 0) + 1
          }
        }
        if (isDeep) console.table(seen)
        expect(seen).toEqual(expected)
      },
      isDeep ? 1_800_000 : 60_000,
    )
  }
})
