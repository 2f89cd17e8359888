/**
 * The attacker process of attacks.ts: `node bench/attacker.ts NAME TARGET`, with TARGET as JSON.
 * Attacks from one address until it gets SIGTERM, then prints how many responses per second it got.
 */
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { newKeyText } from '../packages/server/src/projects/key-text.ts'

export interface Target {
  url: string
  publicKey: string
  browserId: string
  sessionId: string
  /** Returns some megabytes. */
  largePath: string
  secretKey: string
}

const [name = '', given = '{}'] = import.meta.main ? process.argv.slice(2) : []
const target = JSON.parse(given) as Target
const { hostname, port } = new URL(target.url ?? 'http://localhost')

let responses = 0
function open(): Socket {
  const socket = connect(Number(port), hostname).on('error', () => {})
  return socket.on('data', () => {
    responses += 1
  })
}

function request(method: string, path: string, headers: string[], body: Buffer | string = '') {
  const bytes = Buffer.from(body)
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', ...headers]
  if (bytes.length > 0) lines.push(`Content-Length: ${bytes.length}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes])
}

const chunkPath = (key: string, number: number) =>
  `/ingest/v1/chunks?key=${key}&browser=${target.browserId}&session=${target.sessionId}&tab=t&number=${number}`
const chunk = (body: Buffer, number = 0, key = target.publicKey) =>
  request('POST', chunkPath(key, number), ['Content-Type: application/octet-stream'], body)

/** Each connection sends the next request as soon as it gets a response, and reopens when closed. */
function flood(connections: number, next: (n: number) => Buffer): void {
  let n = 0
  const lane = () => {
    const socket = open()
    const send = () => socket.write(next(n++))
    socket.on('connect', send).on('data', send)
    // Not faster than a client on a network could.
    socket.on('close', () => setTimeout(lane, 5))
  }
  for (let i = 0; i < connections; i++) lane()
}

/** Opens all connections, and reopens those that the service closes. */
function hold(connections: number, use: (socket: Socket) => void): void {
  const one = () => {
    const socket = open()
    socket.on('connect', () => use(socket)).on('close', () => setTimeout(one, 100))
  }
  for (let i = 0; i < connections; i++) one()
}

/** Events of almost 8 MiB that compress to more than a 200th of that. */
function expanding(line: string, end: string): Buffer {
  const noise = Array.from({ length: 4_000 }, () => newKeyText('public')).join('')
  const start = `{"a":"${noise}"}\n`
  return gzipSync(start + line.repeat(Math.floor((8_380_000 - start.length) / line.length)) + end)
}

const emptyMember = gzipSync('')
const bodies = {
  // Their last line is invalid: everything is read and nothing stored.
  longLines: () => expanding(`{"a":"${'b'.repeat(1_000)}"}\n`, '{'),
  shortLines: () => expanding('{}\n', '{'),
  members: () => Buffer.concat(Array.from({ length: 52_000 }, () => emptyMember)),
  plainLines: () => Buffer.from(`${'{}\n'.repeat(349_000)}{`),
}

const json = (path: string, body: unknown) =>
  request(
    'POST',
    path,
    ['Content-Type: application/json', `Origin: http://x`],
    typeof body === 'string' ? body : JSON.stringify(body),
  )
const withKey = (key: string) => request('GET', '/v1/persons', [`Authorization: Bearer ${key}`])
const halfSent = request('POST', chunkPath(target.publicKey, 0), [
  'Content-Type: text/plain',
  'Content-Length: 1000000',
])
const text = ['Content-Type: text/plain']

function repeated(make: () => Buffer): (n: number) => Buffer {
  const made = make()
  return () => made
}

const attacks: Record<string, () => void> = {
  'half-sent uploads, 300': () => hold(300, (socket) => socket.write(halfSent)),
  'slow bodies, 256': () =>
    hold(256, (socket) => {
      socket.write(halfSent)
      const trickle = setInterval(() => socket.write('{'), 200)
      socket.on('close', () => clearInterval(trickle))
    }),
  'slow headers, 300': () =>
    hold(300, (socket) => {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n')
      const trickle = setInterval(() => socket.write('X-A: b\r\n'), 500)
      socket.on('close', () => clearInterval(trickle))
    }),
  'slow readers of large answers, 64': () =>
    hold(64, (socket) => {
      socket.write(request('GET', target.largePath, [`Authorization: Bearer ${target.secretKey}`]))
      socket.pause()
      const sip = setInterval(() => socket.read(64), 500)
      socket.on('close', () => clearInterval(sip))
    }),
  'idle connections, 2,000': () => hold(2_000, () => {}),
  'connections opened and closed': () => {
    const one = () => {
      const socket = open()
      socket.on('connect', () => socket.destroy()).on('close', () => setTimeout(one, 5))
    }
    for (let i = 0; i < 16; i++) one()
  },
  'what is no HTTP': () => flood(8, () => Buffer.from('\x16\x03\x01 hello\r\n\r\n')),
  'unknown secret keys': () => flood(16, () => withKey(newKeyText('secret'))),
  'unknown public keys': () => flood(16, (n) => chunk(Buffer.from('{}'), n, newKeyText('public'))),
  'texts that are no keys': () => flood(16, () => withKey('sk_guess')),
  'chunks of 8 MB expanded, long lines': () =>
    flood(
      16,
      repeated(() => chunk(bodies.longLines())),
    ),
  'chunks of 8 MB expanded, short lines': () =>
    flood(
      16,
      repeated(() => chunk(bodies.shortLines())),
    ),
  'chunks of 52,000 gzip members': () =>
    flood(
      16,
      repeated(() => chunk(bodies.members())),
    ),
  'plain chunks of 1 MB, short lines': () =>
    flood(
      16,
      repeated(() => chunk(bodies.plainLines())),
    ),
  'chunks stored, 100 KB each': () => {
    const noise = Array.from({ length: 3_000 }, () => newKeyText('public')).join('')
    const body = gzipSync(`{"a":"${noise}"}`)
    flood(16, (n) => chunk(body, n))
  },
  'chunks over the quota of the day': () => {
    const body = gzipSync(`{"a":"${newKeyText('public').repeat(2_000)}"}`)
    flood(16, (n) => chunk(body, n))
  },
  'sessions of new browsers': () =>
    flood(16, () => request('POST', `/ingest/v1/start?key=${target.publicKey}`, text, '{}')),
  'identifications of new persons': () =>
    flood(16, (n) =>
      request(
        'POST',
        `/ingest/v1/identify?key=${target.publicKey}`,
        text,
        JSON.stringify({ browserId: target.browserId, userId: `u${n}` }),
      ),
    ),
  'sign-ins, 30 at once': () =>
    flood(30, (n) =>
      json('/dashboard/v1/sign-in', {
        email: `a${n}@example.com`,
        password: 'correct horse battery',
      }),
    ),
  'sign-ins of 1 MB of JSON, nested': () =>
    flood(
      8,
      repeated(() =>
        json('/dashboard/v1/sign-in', `${'[['.repeat(250_000)}${']]'.repeat(250_000)}`),
      ),
    ),
  'bodies of 8 MB that are refused': () =>
    flood(
      8,
      repeated(() =>
        request('POST', '/v1/persons', ['Content-Type: application/json'], Buffer.alloc(8_000_000)),
      ),
    ),
  'links of members, guessed': () =>
    flood(16, (n) => json('/dashboard/v1/links/check', { token: `guess-${n}`.padEnd(43, 'x') })),
  'pages of the dashboard and the SDK': () =>
    flood(8, (n) => request('GET', n % 2 ? '/' : '/sdk/v1/lethe.js', ['Connection: close'])),
}

export const attackNames = Object.keys(attacks)

if (import.meta.main) {
  attacks[name]?.()
  process.on('SIGTERM', () => {
    const seconds = performance.now() / 1_000
    process.stdout.write(String(responses / seconds), () => process.exit())
  })
}
