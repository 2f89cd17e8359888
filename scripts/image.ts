/**
 * Builds the image of deploy/Dockerfile without a registry of images: `node scripts/image.ts`. Its
 * base images are made of Debian's packages by mmdebstrap, with the Node and npm that run this, and
 * podman does the rest, with a store of its own in dist/image.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** What this needs, and a file that shows that it is there; and it needs to be root. */
const packages: Record<string, string> = {
  podman: '/usr/bin/podman',
  mmdebstrap: '/usr/bin/mmdebstrap',
  runc: '/usr/sbin/runc',
}

export function missingForImage(): string[] {
  const missing = Object.entries(packages).filter(([, file]) => !existsSync(file))
  const names = missing.map(([name]) => name)
  return process.getuid?.() === 0 ? names : [...names, '(and root)']
}

type Environment = Record<string, string | undefined>

/**
 * A folder with the command `docker`, which is podman with a store of its own in that folder, and
 * the base images of the Dockerfile in it. Returns an environment with that command. `volumes` are
 * in every container, as in `/here:/there`.
 */
export function openDocker(folder: string, volumes: string[] = []): Environment {
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const env: Environment = {
    ...process.env,
    PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}`,
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    // Those of OCI have no health check.
    BUILDAH_FORMAT: 'docker',
    // Asked for with `docker healthcheck run`.
    DISABLE_HC_SYSTEMD: 'true',
  }
  write(folder, 'containers.conf', [
    '[containers]',
    'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]',
    `volumes = ${JSON.stringify(volumes)}`,
    '[engine]',
    'cgroup_manager = "cgroupfs"',
    'events_logger = "file"',
    'runtime = "runc"',
  ])
  write(folder, 'storage.conf', [
    '[storage]',
    'driver = "overlay"',
    `graphroot = "${folder}/images"`,
    `runroot = "${folder}/run"`,
  ])
  const policy = join(folder, 'policy.json')
  writeFileSync(policy, '{"default":[{"type":"insecureAcceptAnything"}]}')
  write(folder, 'bin/docker', ['#!/bin/sh', 'exec /usr/bin/podman "$@"'], 0o755)
  makeBases(folder, env)
  return env
}

function write(folder: string, name: string, lines: string[], mode = 0o644): void {
  writeFileSync(join(folder, name), `${lines.join('\n')}\n`, { mode })
}

/** What Debian's own small image leaves out too. */
const leftOut = ['doc', 'info', 'locale', 'man'].map(
  (name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`,
)

/** An image under each name that the Dockerfile begins with. */
function makeBases(folder: string, env: Environment): void {
  const froms = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8').matchAll(/^FROM (\S+)/gm)
  const [node, debian] = [...froms].map(([, name]) => name as string)
  if (!node?.startsWith('node:24-bookworm') || debian !== 'debian:bookworm-slim') {
    throw new Error(`deploy/Dockerfile begins with ${node} and ${debian}: say here what these are.`)
  }
  const docker = (words: string[]) => execFileSync('docker', words, { env, stdio: 'pipe' })
  if (spawnSync('docker', ['image', 'exists', `docker.io/library/${node}`], { env }).status === 0) {
    return
  }
  const archive = join(folder, 'debian.tar')
  // The package usrmerge would bring 50 MB of Perl.
  const merged = ['--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr', '--include=usr-is-merged']
  const words = ['--variant=minbase', ...merged, ...leftOut, 'bookworm', archive]
  execFileSync('mmdebstrap', ['--quiet', ...words], { stdio: ['ignore', 'inherit', 'inherit'] })
  docker(['import', archive, `docker.io/library/${debian}`])
  rmSync(archive)

  const context = mkdtempSync(join(folder, 'node-'))
  cpSync(process.execPath, join(context, 'node'))
  const npm = realpathSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim())
  cpSync(dirname(dirname(npm)), join(context, 'npm'), { recursive: true })
  write(context, 'Dockerfile', [
    `FROM docker.io/library/${debian}`,
    'COPY node /usr/local/bin/node',
    'COPY npm /usr/local/lib/node_modules/npm',
    'RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm',
  ])
  docker(['build', '--quiet', '--tag', `docker.io/library/${node}`, context])
  rmSync(context, { recursive: true })
}

/** Bytes of an image, with those of its base. */
export function sizeOfImage(env: Environment, name: string): number {
  const words = ['image', 'inspect', '--format', '{{.Size}}', name]
  return Number(execFileSync('docker', words, { env, encoding: 'utf8' }))
}

if (import.meta.main) {
  const missing = missingForImage()
  if (missing.length > 0) {
    console.error(`The image is built with the Debian packages ${missing.join(' ')}.`)
    process.exit(1)
  }
  const folder = join(root, 'dist/image')
  const env = openDocker(folder)
  const show = { cwd: root, env, stdio: 'inherit' } as const
  for (const name of readdirSync(root)) if (/^lethe-.*\.tgz$/.test(name)) rmSync(join(root, name))
  execFileSync('node', ['scripts/package.ts'], show)
  execFileSync('docker', ['build', '-f', 'deploy/Dockerfile', '-t', 'lethe', '.'], show)
  const megabytes = (sizeOfImage(env, 'lethe') / 1e6).toFixed(0)
  console.log(`The image lethe: ${megabytes} MB. Use it by the command ${folder}/bin/docker.`)
}
