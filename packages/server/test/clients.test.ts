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

/** Sends the body as this client does by itself, and gives the status it saw. */
type Client = (request: Outgoing) => Promise<number>

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

async function printed(command: string, args: string[], request: Outgoing) {
  const env = { ...process.env, GIVEN: JSON.stringify(request) }
  const { stdout } = await run(command, args, { env })
  return Number(stdout.trim())
}

const python = (imports: string, send: string) =>
  `import json, os${imports}
given = json.loads(os.environ['GIVEN'])
method, url, headers = given['method'], given['url'], given['headers']
body = given['start'].ljust(given['bytes']).encode()
${send}`

const urllib = python(
  ', urllib.request, urllib.error',
  `request = urllib.request.Request(url, data=body, headers=headers, method=method)
try:
  print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
  print(error.code)`,
)
const requests = python(
  ', requests',
  'print(requests.request(method, url, data=body, headers=headers).status_code)',
)
const httpx = python(
  ', httpx',
  'print(httpx.request(method, url, content=body, headers=headers).status_code)',
)

const go = `package main
import ("bytes"; "encoding/json"; "fmt"; "net/http"; "os")
func main() {
  var given struct { Method, Url, Start string; Headers map[string]string; Bytes int }
  json.Unmarshal([]byte(os.Getenv("GIVEN")), &given)
  body := bytes.Repeat([]byte(" "), given.Bytes)
  copy(body, given.Start)
  request, _ := http.NewRequest(given.Method, given.Url, bytes.NewReader(body))
  for name, value := range given.Headers { request.Header.Set(name, value) }
  answer, err := http.DefaultClient.Do(request)
  if err != nil { fmt.Println(err); os.Exit(1) }
  fmt.Println(answer.StatusCode)
}`

const clients: Record<string, Client> = {
  "Node's fetch": async (request) => {
    const { method, url, headers } = request
    return (await fetch(url, { method, headers, body: bodyOf(request) })).status
  },
  ...(isThere('curl', 'curl', 'curl', '--version') && {
    curl: async (request) => {
      const { method, url, headers } = request
      const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
      const args = ['-s', '-o', '/dev/null', '-w', '%{http_code}', '-X', method, ...given]
      const running = run('curl', [...args, '--data-binary', '@-', url])
      running.child.stdin?.on('error', () => {}).end(bodyOf(request))
      return Number((await running).stdout)
    },
  }),
  ...(isThere("Python's urllib", 'python3', pythonProgram, '--version') && {
    "Python's urllib": (request) => printed(pythonProgram, ['-c', urllib], request),
  }),
  ...(isDeep && {
    axios: async (request) => {
      const { method, url, headers } = request
      const sent = { method, url, headers, data: bodyOf(request), validateStatus: () => true }
      return (await axios.request(sent)).status
    },
    undici: async (request) => {
      const { method, url, headers } = request
      const answer = await undici(url, { method, headers, body: bodyOf(request) } as never)
      await answer.body.dump()
      return answer.statusCode
    },
    got: async (request) => {
      const { method, url, headers } = request
      const sent = { method: method as 'POST', headers, body: bodyOf(request), allowGetBody: true }
      return (await got(url, { ...sent, throwHttpErrors: false, retry: { limit: 0 } })).statusCode
    },
  }),
  ...(isDeep &&
    isThere("Python's requests", 'python3-requests', pythonProgram, '-c', 'import requests') && {
      requests: (request) => printed(pythonProgram, ['-c', requests], request),
    }),
  ...(isDeep &&
    isThere("Python's httpx", 'python3-httpx', pythonProgram, '-c', 'import httpx') && {
      httpx: (request) => printed(pythonProgram, ['-c', httpx], request),
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
  return async (request) => {
    compiled ??= compile()
    return printed(await compiled, [], request)
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
          for (const [status, given] of all) {
            if (given.headers?.expect && withoutExpect.has(name)) continue
            const headers = { ...given.headers, ...ending }
            const request = { method: 'POST', start: '', bytes: tooLarge, ...given, headers }
            const of = `${status} ${request.method} ${new URL(request.url).pathname}`
            // A client that saw no status at all counts as 0.
            const arrived = await send(request).catch(() => 0)
            expected[of] = (expected[of] ?? 0) + 1
            const saw = arrived === status ? of : `${of}, but saw ${arrived}`
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
