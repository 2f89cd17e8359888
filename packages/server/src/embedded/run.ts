import { spawn } from 'node:child_process'
import type { Account } from './account.ts'

export interface Run {
  program: string
  args: string[]
  /** Entered before the rights of root are given up, so it may lie in a folder closed to `account`. */
  folder: string
  account: Account | undefined
  input?: string
}

export interface RunResult {
  ok: boolean
  output: string
  /** Standard error, or why the program could not be started at all. */
  complaint: string
}

/** Nothing of our own environment, whose PG… variables would change what PostgreSQL does. */
export const environment = { LC_ALL: 'C', PATH: '/usr/bin:/bin' }

/** Runs one of PostgreSQL's programs to its end. */
export function run({ program, args, folder, account, input = '' }: Run): Promise<RunResult> {
  const ended = new Promise<RunResult>((resolve, reject) => {
    const child = spawn(program, args, { cwd: folder, env: environment, ...account })
    const output: string[] = []
    const complaint: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => complaint.push(text))
    // A program that ended before it read its input has said why, or its exit code will.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ ok: code === 0, output: output.join(''), complaint: complaint.join('') })
    })
  })
  return ended.catch((error: Error) => ({ ok: false, output: '', complaint: error.message }))
}
