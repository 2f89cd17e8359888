import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inject } from 'vitest'

export type S3ServerName = 'swift' | 'radosgw'

/** The Debian packages of each server, and a file that shows that a package is there. */
const packages: Record<S3ServerName, Record<string, string>> = {
  swift: { 'python3-swift': '/usr/lib/python3/dist-packages/swift/common/wsgi.py' },
  radosgw: {
    radosgw: '/usr/bin/radosgw',
    'ceph-mon': '/usr/bin/ceph-mon',
    'ceph-osd': '/usr/bin/ceph-osd',
    'ceph-common': '/usr/bin/ceph-authtool',
  },
}

export function missingPackages(name: S3ServerName): string[] {
  return Object.entries(packages[name])
    .filter(([, file]) => !existsSync(file))
    .map(([debianPackage]) => debianPackage)
}

/**
 * Whether tests that need Debian packages run. Without them they are skipped in the open: the
 * words go to the output and into the name of what is skipped. Where nobody reads the output,
 * that is in CI, it throws instead.
 */
export function runsHere(
  what: string,
  missing: string[],
  isCI: boolean,
): { runs: true } | { runs: false; title: string } {
  if (missing.length === 0) return { runs: true }
  const words = `${what} needs the Debian packages ${missing.join(' ')}`
  if (isCI) throw new Error(`${words}. In CI nothing is skipped: install them first.`)
  console.warn(`\n*** SKIPPED: ${words}. Nothing of it was tested. ***\n`)
  return { runs: false, title: `skipped: ${words}` }
}

export interface S3Server {
  name: S3ServerName
  /** Listens on 127.0.0.1 alone. */
  endpoint: string
  accessKeyId: string
  secretAccessKey: string
}

/** The server of this run, which the first file that asks for it starts. Each test makes a bucket of its own. */
export async function s3Server(name: S3ServerName): Promise<S3Server> {
  const response = await fetch(`${inject('s3Servers')}/${name}`)
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as S3Server
}

/** Starts, in the process of all test files, a server at the first request for it. Returns where to ask. */
export async function startS3Servers(): Promise<{ url: string; stop(): Promise<void> }> {
  const started = new Map<string, ReturnType<typeof startS3Server>>()
  const broker = createHttpServer(async ({ url = '' }, response) => {
    const name = url.slice(1) as S3ServerName
    if (!started.has(name)) started.set(name, startS3Server(name))
    try {
      response.end(JSON.stringify(await started.get(name)))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  }).listen(0, '127.0.0.1')
  await once(broker, 'listening')
  return {
    url: `http://127.0.0.1:${(broker.address() as { port: number }).port}`,
    async stop() {
      broker.close()
      const servers = await Promise.allSettled(started.values())
      for (const one of servers) if (one.status === 'fulfilled') await one.value.stop()
    },
  }
}

/** Starts a real server on free ports with an empty store. It ends with this process at the latest. */
async function startS3Server(name: S3ServerName): Promise<S3Server & { stop(): Promise<void> }> {
  // Not the folder for temporary files: in memory it may keep no extended attributes.
  const directory = await mkdtemp(join('/var/tmp', `lethe-${name}-`))
  const launcher = join(import.meta.dirname, `${name}-s3.${name === 'swift' ? 'py' : 'sh'}`)
  const server = spawn(
    name === 'swift' ? '/usr/bin/python3' : '/bin/bash',
    [launcher, directory, ...(name === 'swift' ? [] : await freePorts(3))],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  )
  const ended = once(server, 'exit')
  const stop = async () => {
    server.stdin.end()
    await ended
    await rm(directory, { recursive: true, force: true, maxRetries: 5 })
  }
  let complaints = ''
  server.stderr.on('data', (data) => {
    complaints += data
  })
  for await (const line of createInterface({ input: server.stdout })) {
    const [ready, port, accessKeyId = '', secretAccessKey = ''] = line.split(' ')
    if (ready !== 'ready') continue
    return { name, endpoint: `http://127.0.0.1:${port}`, accessKeyId, secretAccessKey, stop }
  }
  const user = await readFile(join(directory, 'user.out'), 'utf8').catch(() => '')
  await stop()
  throw new Error(`The S3 server ${name} did not start:\n${complaints}${user}`)
}

async function freePorts(count: number): Promise<string[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => String((server.address() as { port: number }).port))
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  return ports
}
