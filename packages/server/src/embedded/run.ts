import { spawn } from 'node:child_process'
import type { Account } from './account.ts'

export interface Run {
  program: string
  args: string[]
  /** Entered before root changes to `account`, which may lack access to the folders above. */
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

/** Without our own environment: its PG… variables would change what PostgreSQL does. */
export const environment = { LC_ALL: 'C', PATH: '/usr/bin:/bin' }

/** Runs one of PostgreSQL's programs to its end. */
export function run({ program, args, folder, account, input = '' }: Run): Promise<RunResult> {
  const ended = new Promise<RunResult>((resolve, reject) => {
    const child = spawn(program, args, { cwd: folder, env: environment, ...account })
    const output: string[] = []
    const complaint: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => complaint.push(text))
    // If a program ends before it reads its input, its output or exit code says why.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ ok: code === 0, output: output.join(''), complaint: complaint.join('') })
    })
  })
  return ended.catch((error: Error) => ({ ok: false, output: '', complaint: error.message }))
}
