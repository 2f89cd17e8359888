import { isIP } from 'node:net'
import type { LogLevel } from './log.ts'

/** A setting that cannot be used; the message is one line, names the setting, and is for an operator. */
export class SettingRefused extends Error {
  override readonly name = 'SettingRefused'
}

interface Setting<T> {
  default: string
  read(text: string): T
  describe: string
}

/** Throws for a text that is no value of the setting, saying what one is. */
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

const oneOf =
  <T extends string>(...values: T[]) =>
  (text: string): T =>
    values.find((value) => value === text) ?? expects(`one of ${values.join(', ')}`)

/** A URL of a scheme and a host, without the slash that would follow them. */
function origin(value: string): string {
  if (value === '') return ''
  const url = URL.canParse(value) ? new URL(value) : undefined
  const isOrigin = url && /^https?:$/.test(url.protocol) && `${url.origin}/` === url.href
  return isOrigin ? url.origin : expects('a URL without a path, as in https://lethe.example.com')
}

function postgresUrl(value: string): string {
  return value === '' || /^postgres(?:ql)?:\/\/\S+$/.test(value)
    ? value
    : expects('a URL that begins with postgres://')
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
  return areValid ? proxies : expects('a number of proxies, or their addresses with commas')
}

/** Every setting there is. The README's table is made of this one (`npm run generate`). */
export const settings = {
  HOST: {
    default: '127.0.0.1',
    read: (value) => (/^\S+$/.test(value) ? value : expects('an address or a host name')),
    describe: 'The address to listen on; `0.0.0.0` for all.',
  } as Setting<string>,
  PORT: {
    default: '3000',
    read: integer(0, 65_535),
    describe: 'The port to listen on; `0` takes a free one.',
  } as Setting<number>,
  DATABASE_URL: {
    default: '',
    read: postgresUrl,
    describe:
      'A PostgreSQL 15 to 18, as in `postgres://user:password@host/database`. Empty: the embedded one.',
  } as Setting<string>,
  DATA_DIR: {
    default: './data',
    read: (value) => (value.trim() === '' ? expects('the path of a folder') : value),
    describe: 'The folder of the embedded database and whatever else is kept on this machine.',
  } as Setting<string>,
  DATABASE_POOL_SIZE: {
    default: '8',
    read: integer(2, 200),
    describe: 'Connections for all but the shortest reads, in each process.',
  } as Setting<number>,
  LOG_LEVEL: {
    default: 'info',
    read: oneOf('debug', 'info', 'warn', 'error'),
    describe:
      'How much is logged, as JSON lines: `info` has refused and failed requests, `debug` all of them.',
  } as Setting<LogLevel>,
  RATE_LIMIT_PER_SECOND: {
    default: '0',
    read: integer(0, 1_000_000),
    describe: 'Requests a secret key may make a second for ever, in each process; `0` is no limit.',
  } as Setting<number>,
  RATE_LIMIT_BURST: {
    default: '100',
    read: integer(1, 1_000_000),
    describe: 'Requests a secret key may make at once before the limit holds.',
  } as Setting<number>,
  TRUST_PROXY: {
    default: '0',
    read: trustedProxies,
    describe:
      'Whose `X-Forwarded-For` is believed: how many proxies stand in front, or their addresses (`10.0.0.0/8,loopback`). Limits per address need it behind a proxy.',
  } as Setting<number | string[]>,
  INGEST_LIMIT_PER_ADDRESS: {
    default: '200',
    read: integer(0, 1_000_000),
    describe:
      'Requests of browsers from one address a second for ever, in each process, and ten times as many at once; a fifth of that for new sessions and identifications. `0` is no limit.',
  } as Setting<number>,
  INGEST_LIMIT_PER_PROJECT: {
    default: '1000',
    read: integer(0, 1_000_000),
    describe:
      'Requests of browsers of one project a second for ever, in each process, and ten times as many at once. `0` is no limit.',
  } as Setting<number>,
  BLOBS_URL: {
    default: '',
    read: (value) =>
      value === '' || /^s3:\/\/\S+$/.test(value) ? value : expects('as in s3://bucket/prefix'),
    describe: 'Where recordings are kept, `s3://bucket/prefix`. Empty: a folder in `DATA_DIR`.',
  } as Setting<string>,
  S3_ENDPOINT: {
    default: '',
    read: (value) =>
      value === '' || /^https?:\/\/\S+$/.test(value) ? value : expects('an http or https URL'),
    describe: 'An S3 server other than that of AWS, as in `https://s3.example.com`.',
  } as Setting<string>,
  MASTER_KEY: {
    default: '',
    read: (value) => value,
    describe:
      'What wraps the data keys of recordings, as in `k1:<32 bytes of base64>`; several with commas, the first one wraps. Empty: a file `keys/master-key` in `DATA_DIR`.',
  } as Setting<string>,
  KEY_DATABASE_URL: {
    default: '',
    read: postgresUrl,
    describe:
      'A small PostgreSQL database for the data keys, to be kept out of backups. Empty: the main one.',
  } as Setting<string>,
  ERASURE_RETRY_DELAYS: {
    default: '30,60,120,240',
    read: retryDelays,
    describe:
      'Seconds from a failed attempt of an erasure to the next: four numbers, as there are five attempts.',
  } as Setting<readonly [number, number, number, number]>,
  ERASURE_JOBS_AT_ONCE: {
    default: '4',
    read: integer(1, 64),
    describe:
      'Deletion jobs that a process works on at the same time. Up to 32 of persons with little recorded count as one.',
  } as Setting<number>,
  PUBLIC_URL: {
    default: '',
    read: origin,
    describe:
      'Where the service is reached from outside, as in `https://lethe.example.com`: for links, snippets and the check that a request comes from the dashboard. Empty: what each request says.',
  } as Setting<string>,
  REPLAY_URL: {
    default: '',
    read: origin,
    describe:
      'A second address of the service that recordings are played at, so that they never share an origin with the dashboard (set `PUBLIC_URL` too). Empty: a sealed frame of the same origin.',
  } as Setting<string>,
  WEBHOOK_PRIVATE_ADDRESSES: {
    default: 'refuse',
    read: oneOf('refuse', 'allow'),
    describe:
      'Whether webhooks may lead to private and loopback addresses, and by plain http; `refuse` or `allow`.',
  } as Setting<'refuse' | 'allow'>,
  BACKUP_RETENTION_DAYS: {
    default: '30',
    read: integer(0, 36_500),
    describe:
      'How long you keep backups of the database, in days; receipts say it. It deletes nothing.',
  } as Setting<number>,
} satisfies Record<string, Setting<unknown>>

type Settings = typeof settings
export type Config = { [Name in keyof Settings]: ReturnType<Settings[Name]['read']> }

/** Reads the settings out of an environment; an empty one is the default. Values are never repeated. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const entries = Object.entries(settings).map(([name, setting]) => {
    const value = environment[name] || setting.default
    try {
      return [name, setting.read(value)]
    } catch (error) {
      throw new SettingRefused(`The setting ${name} has to be ${(error as Error).message}.`)
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
