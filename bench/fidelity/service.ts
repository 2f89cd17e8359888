import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Lethe {
  url: string
  secretKey: string
  publicKey: string
}

/** The service as `npm start` runs it, on a folder and a port of its own. */
export async function startLethe(): Promise<{ lethe: Lethe; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'lethe-fidelity-'))
  const command = join(import.meta.dirname, '../../packages/server/bin/lethe.ts')
  const child = spawn(process.execPath, [command, 'serve'], {
    env: { ...process.env, PORT: '0', DATA_DIR: folder, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  for await (const part of child.stdout) {
    said += part
    if (/\bpk_\w+/.test(said)) break
  }
  const found = (pattern: RegExp) => pattern.exec(said)?.[0] ?? ''
  const lethe = {
    url: found(/http:\/\/[\d.]+:\d+/),
    secretKey: found(/\bsk_\w+/),
    publicKey: found(/\bpk_\w+/),
  }
  return {
    lethe,
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
