import { isIP } from 'node:net'
import type { LogLevel } from './log.ts'

/** A setting has an invalid value. The message is one line for an operator and names the setting. */
export class SettingRefused extends Error {
  override readonly name = 'SettingRefused'
}

interface Setting<T> {
  default: string
  read(text: string): T
  describe: string
}

/** Refuses a value; `what` says what a valid one is. */
function expects(what: string): never {
  throw new Error(what)
}

const integer =
  (minimum: number, maximum: number) =>
  (text: string): number => {
    const number = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return number >= minimum && number <= maximum
      ? number
      : expects(`a whole number from ${minimum} to ${maximum}`)
  }

const text = (value: string): string => value

const oneOf =
  <T extends string>(...values: T[]) =>
  (text: string): T =>
    values.find((value) => value === text) ?? expects(`one of ${values.join(', ')}`)

function httpUrl(value: string): string {
  return value === '' || /^https?:\/\/\S+$/.test(value) ? value : expects('an http or https URL')
}

/** A URL of a scheme and a host, without a slash at the end. */
function origin(value: string): string {
  if (value === '') return ''
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isOrigin = url && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href
  return isOrigin ? url.origin : expects('a URL without a path, as in https://lethe.example.com')
}

/** Paths of the service itself: never pages of the dashboard, and ambiguous as a base path. */
export const ownPaths =
  /^\/(?:v\d+|ingest|sdk|health|docs|metrics|dashboard|assets|replay|\.well-known)(?:\/|$)/

/** An origin, or a URL with a path that all paths of the service begin with. */
function baseUrl(value: string): string {
  if (value === '') return ''
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isBase =
    url &&
    /^https?:$/.test(url.protocol) &&
    /^(?:\/[\w~-][\w.~-]*)*\/?$/.test(url.pathname) &&
    !ownPaths.test(url.pathname) &&
    `${url.origin}${url.pathname}` === url.href
  return isBase
    ? url.href.replace(/\/$/, '')
    : expects(
        "a URL as in https://lethe.example.com or https://example.com/lethe, whose path is none of Lethe's own",
      )
}

function postgresUrl(value: string): string {
  if (value === '') return ''
  const [, hosts = ''] = /^postgres(?:ql)?:\/\/(?:[^@/]*@)?([^/?]*)/.exec(value) ?? []
  if (hosts.includes(',')) expects('a URL with one host; use a proxy to reach several')
  // PostgreSQL takes a URL without a host as a socket; the parser of URLs needs a host.
  const url = value.replace(/@\//, '@localhost/')
  return /^postgres(?:ql)?:\/\/\S+$/.test(url) && URL.canParse(url)
    ? url
    : expects(
        'a URL as in postgres://user:password@host:5432/database, with special characters encoded',
      )
}

/** IPv6 with or without brackets. */
function listenHost(value: string): string {
  const host = /^\[(.+)\]$/.exec(value)?.[1] ?? value
  return /^\S+$/.test(host) ? host : expects('an address or a host name')
}

function retryDelays(text: string): readonly [number, number, number, number] {
  const seconds = text.split(',').map((part) => (/^ *\d{1,7} *$/.test(part) ? Number(part) : -1))
  return seconds.length === 4 && seconds.every((one) => one >= 0)
    ? (seconds as [number, number, number, number])
    : expects('four numbers of seconds, as in 30,60,120,240')
}

const proxyNames = new Set(['loopback', 'linklocal', 'uniquelocal'])

function trustedProxies(text: string): number | string[] {
  if (/^\d$/.test(text)) return Number(text)
  const proxies = text.split(',').map((one) => one.trim())
  const areValid = proxies.every((one) => {
    const [address = '', bits = '0'] = one.split('/')
    const version = isIP(address)
    const bitsMaximum = version === 4 ? 32 : 128
    return proxyNames.has(one) || (version > 0 && /^\d{1,3}$/.test(bits) && +bits <= bitsMaximum)
  })
  return areValid ? proxies : expects('a number of proxies, or their addresses separated by commas')
}

/** The minute of the day (UTC), or `auto`; undefined means never. */
function timeOfDay(text: string): number | 'auto' | undefined {
  if (text === 'auto') return 'auto'
  if (text === 'off') return undefined
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  return hour === undefined
    ? expects('a time of day as in 03:30, or off, or auto')
    : Number(hour) * 60 + Number(minute)
}

/** All settings. `npm run generate` writes the README's table from them. */
export const settings = {
  HOST: {
    default: '127.0.0.1',
    read: listenHost,
    describe: 'The address to listen on; `0.0.0.0` for all.',
  } as Setting<string>,
  PORT: {
    default: '3000',
    read: integer(0, 65_535),
    describe: 'The port to listen on; `0` takes a free one.',
  } as Setting<number>,
  OPERATIONS_PORT: {
    default: '',
    read: (value) => (value === '' ? undefined : integer(0, 65_535)(value)),
    describe:
      'A second port for `/metrics` and `/health/*`, for workers too. `/metrics` is then no longer on `PORT`. Empty: none.',
  } as Setting<number | undefined>,
  DATABASE_URL: {
    default: '',
    read: postgresUrl,
    describe:
      'A PostgreSQL 15 to 18 database, as in `postgres://user:password@host/database`. Empty: the embedded one.',
  } as Setting<string>,
  START_WAIT_SECONDS: {
    default: '120',
    read: integer(0, 3_600),
    describe: 'How long to wait at start for a database or bucket that cannot be reached yet.',
  } as Setting<number>,
  DATA_DIR: {
    default: './data',
    read: (value) => (value.trim() === '' ? expects('the path of a folder') : value),
    describe: 'The folder for the embedded database and all other files Lethe keeps.',
  } as Setting<string>,
  DATABASE_POOL_SIZE: {
    default: '5',
    read: integer(2, 200),
    describe:
      'Database connections in the pool of each process. A process uses up to 7 more, for short reads, erasures, sign-ins and notifications.',
  } as Setting<number>,
  LOG_LEVEL: {
    default: 'info',
    read: oneOf('debug', 'info', 'warn', 'error'),
    describe:
      'How much is logged, as JSON lines: `info` logs refused and failed requests, `debug` all requests.',
  } as Setting<LogLevel>,
  RATE_LIMIT_PER_SECOND: {
    default: '0',
    read: integer(0, 1_000_000),
    describe: 'Average requests per second for one secret key, per process. `0`: no limit.',
  } as Setting<number>,
  RATE_LIMIT_BURST: {
    default: '100',
    read: integer(1, 1_000_000),
    describe: 'Requests a secret key may make in a burst before that limit applies.',
  } as Setting<number>,
  TRUST_PROXY: {
    default: '0',
    read: trustedProxies,
    describe:
      'Proxies whose `X-Forwarded-For` is trusted: their number, or their addresses (`10.0.0.0/8,loopback`). Set it behind a proxy, or limits per address count all clients as one.',
  } as Setting<number | string[]>,
  INGEST_LIMIT_PER_ADDRESS: {
    default: '200',
    read: integer(0, 1_000_000),
    describe:
      'Requests per second from browsers at one IP address, per process, with bursts of ten times as many. New sessions and identifications get a fifth of that. Requests with neither a secret key nor a sign-in are slowed down to a quarter of this rate after a burst of this many; one that would wait for 5 seconds gets 429. `0`: no limit.',
  } as Setting<number>,
  INGEST_LIMIT_PER_PROJECT: {
    default: '1000',
    read: integer(0, 1_000_000),
    describe:
      'Requests per second from browsers of one project, per process, with bursts of ten times as many. `0`: no limit.',
  } as Setting<number>,
  INGEST_MEGABYTES_PER_ADDRESS: {
    default: '5000',
    read: integer(0, 1_000_000_000),
    describe:
      'Megabytes that browsers at one IP address may record per day (UTC), per process. After that they stop recording. `0`: no limit.',
  } as Setting<number>,
  INGEST_MEGABYTES_PER_PROJECT: {
    default: '100000',
    read: integer(0, 1_000_000_000),
    describe:
      'Megabytes that browsers of one project may record per day (UTC), in all processes together. `0`: no limit.',
  } as Setting<number>,
  INGEST_SESSIONS_PER_BROWSER: {
    default: '200',
    read: integer(0, 1_000_000),
    describe: 'Sessions that one browser may start per day. `0`: no limit.',
  } as Setting<number>,
  UNKNOWN_KEYS_PER_ADDRESS: {
    default: '20',
    read: integer(0, 1_000_000),
    describe:
      'Requests per second without a key or with an unknown one from one IP address, per process, with bursts of ten times as many; more get 429. Valid keys are not affected. `0`: no limit.',
  } as Setting<number>,
  DEMO: {
    default: 'auto',
    read: oneOf('auto', 'on', 'off'),
    describe:
      'The page `/demo`, a sample shop that records into its own project. `auto`: on if the database is the embedded one, `HOST` is a loopback address, `PUBLIC_URL` is empty and `NODE_ENV` is not `production`.',
  } as Setting<'auto' | 'on' | 'off'>,
  BROWSERS_PER_PERSON: {
    default: '1000',
    read: integer(1, 1_000_000),
    describe:
      'Browsers that can be linked to one person. A further browser that identifies as that person is no longer recorded, and what it has recorded is deleted.',
  } as Setting<number>,
  COUNTRY_DATABASE: {
    default: '',
    read: text,
    describe:
      'A file in the MaxMind DB format that knows countries, such as GeoLite2 Country: sessions are then stored with the country of their IP address, never the address. Empty: no countries.',
  } as Setting<string>,
  BLOBS_URL: {
    default: '',
    read: (value) =>
      value === '' || /^s3:\/\/\S+$/.test(value)
        ? value
        : expects('a URL as in s3://bucket/prefix'),
    describe:
      'The bucket for recordings, as in `s3://bucket/prefix`. Empty: a folder in `DATA_DIR`.',
  } as Setting<string>,
  S3_ENDPOINT: {
    default: '',
    read: httpUrl,
    describe: 'An S3 server other than AWS, as in `https://s3.example.com`.',
  } as Setting<string>,
  MASTER_KEY: {
    default: '',
    read: text,
    describe:
      'The key that encrypts the data keys of recordings, as in `k1:<32 bytes in base64>`. Separate several with commas: the first encrypts, all decrypt. Empty: the file `keys/master-key` in `DATA_DIR`.',
  } as Setting<string>,
  MASTER_KEY_COMMAND: {
    default: '',
    read: text,
    describe:
      'A shell command that prints the master keys, for example from a key management service. Empty: none.',
  } as Setting<string>,
  KEY_DATABASE_URL: {
    default: '',
    read: postgresUrl,
    describe:
      'A separate PostgreSQL database for the data keys, so that you can leave it out of backups. Empty: the main one.',
  } as Setting<string>,
  ERASURE_RETRY_DELAYS: {
    default: '30,60,120,240',
    read: retryDelays,
    describe:
      'Seconds to wait after each failed attempt of an erasure: four numbers, for five attempts.',
  } as Setting<readonly [number, number, number, number]>,
  ERASURE_JOBS_AT_ONCE: {
    default: '2',
    read: integer(1, 64),
    describe:
      'Deletion jobs that a process runs at the same time. Up to 32 jobs for people with few recordings run together and count as one.',
  } as Setting<number>,
  PUBLIC_URL: {
    default: '',
    read: baseUrl,
    describe:
      'The public address of the service, as in `https://lethe.example.com` or `https://example.com/lethe`: used in links and snippets, and to check that a request comes from the dashboard. Empty: taken from each request.',
  } as Setting<string>,
  REPLAY_URL: {
    default: '',
    read: origin,
    describe:
      'A second address of the service, on another origin than the dashboard, for playing recordings (set `PUBLIC_URL` too). Empty: recordings play in a sandboxed frame of the same origin; on loopback, at `localhost` if the dashboard is at `127.0.0.1`, and the reverse.',
  } as Setting<string>,
  WEBHOOK_PRIVATE_ADDRESSES: {
    default: 'refuse',
    read: oneOf('refuse', 'allow'),
    describe:
      'Whether webhooks may go to private and loopback addresses and use plain http: `refuse` or `allow`.',
  } as Setting<'refuse' | 'allow'>,
  AUDIT_RETENTION_DAYS: {
    default: '365',
    read: integer(1, 36_500),
    describe:
      'Days to keep entries of the audit log. Email addresses of former members are in it until then.',
  } as Setting<number>,
  ANCHOR_FILE: {
    default: '',
    read: text,
    describe:
      'A file for anchors: signed lines, one for each project with new receipts, that reveal it if receipts are replaced later. Keep it, or a copy, where only you can write. Empty: none.',
  } as Setting<string>,
  ANCHOR_URL: {
    default: '',
    read: httpUrl,
    describe: 'A URL to which each anchor is sent by POST, as JSON. Empty: none.',
  } as Setting<string>,
  ANCHOR_TIMESTAMP_URL: {
    default: '',
    read: httpUrl,
    describe:
      'A time stamping authority (RFC 3161) that stamps each anchor; it gets a hash and nothing else. Empty: none.',
  } as Setting<string>,
  PURGE_AT: {
    default: 'auto',
    read: timeOfDay,
    describe:
      'When `lethe purge` runs each day, as in `03:30` (UTC), or `off`. It removes what the database files still hold of erased people, and locks each table while rewriting it. `auto`: `03:30` with the embedded database, otherwise `off`.',
  } as Setting<number | 'auto' | undefined>,
  BACKUP_RETENTION_DAYS: {
    default: '30',
    read: integer(0, 36_500),
    describe:
      'Days for which you keep backups of the database. Receipts state it; Lethe deletes no backups.',
  } as Setting<number>,
} satisfies Record<string, Setting<unknown>>

/** Settings that `lethe config` does not show, and that may be in a file named by NAME_FILE. */
export const secretSettings = ['DATABASE_URL', 'KEY_DATABASE_URL', 'MASTER_KEY'] as const

type Settings = typeof settings
export type Config = { [Name in keyof Settings]: ReturnType<Settings[Name]['read']> }

/** Reads the settings out of an environment; an empty one is the default. Values are never repeated. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const entries = Object.entries(settings).map(([name, setting]) => {
    const value = environment[name] || setting.default
    try {
      return [name, setting.read(value)]
    } catch (error) {
      throw new SettingRefused(`The setting ${name} must be ${(error as Error).message}.`)
    }
  })
  return Object.fromEntries(entries) as Config
}

/** The README's table of settings, as Markdown. */
export function settingsTable(): string {
  const rows = Object.entries(settings).map(
    ([name, setting]) =>
      `| \`${name}\` | ${setting.default === '' ? '' : `\`${setting.default}\``} | ${setting.describe} |`,
  )
  return ['| setting | default | what it does |', '| --- | --- | --- |', ...rows].join('\n')
}
