import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { blockOf } from './documents.ts'

export type Shell = Record<string, string | undefined>

/** Runs lines as somebody types them. Returns what they printed. */
export async function type(lines: string, env: Shell, cwd: string): Promise<string> {
  const words = ['--norc', '-euo', 'pipefail', '-c', lines]
  const ended = await promisify(execFile)('bash', words, { env, cwd, timeout: 900_000 })
  return ended.stdout
}

/**
 * Does what the README says under "Use", command by command: from a person to its erasure and a
 * receipt that is genuine. `url` is where this installation is reached, `lethe` what its page says to
 * write for `npx lethe`.
 */
export async function followUse(
  { url, key, lethe = 'npx lethe' }: { url: string; key: string; lethe?: string },
  env: Shell,
  cwd: string,
): Promise<void> {
  const commands = blockOf('README.md', 'sh use')
    .replaceAll('http://127.0.0.1:3000', url)
    .replaceAll('npx lethe', lethe)
    .replace('sk_…', key)
    .trimEnd()
    .split(/(?<![\\|])\n/)
  const [exported, ...rest] = commands
  expect(exported).toContain(key)
  const shell = { ...env, KEY: key }
  let jobId = ''
  let last = ''
  for (const command of rest) {
    last = await type(command.replace('JOB_ID', jobId), shell, cwd)
    jobId ||= /"job":\{"id":"([^"]+)"/.exec(last)?.[1] ?? ''
    // Somebody who looks at a job that is not done looks again.
    if (!command.endsWith(`/JOB_ID -H "Authorization: Bearer $KEY"`)) continue
    while (JSON.parse(last).job.status !== 'completed') {
      await sleep(200)
      last = await type(command.replace('JOB_ID', jobId), shell, cwd)
    }
  }
  expect(last).toContain('The receipt is genuine.')
}

/** Says how long it took somebody who followed the pages alone. */
export async function timed(title: string, walk: () => Promise<void>): Promise<void> {
  const begin = performance.now()
  await walk()
  const seconds = Math.round((performance.now() - begin) / 1_000)
  console.log(`Walk-through, ${title}: ${seconds} s from nothing to a receipt that was checked.`)
}
