#!/usr/bin/env -S node --max-semi-space-size=8 --max-old-space-size=1024 --no-parallel-scavenge
// Left to itself the engine lets garbage grow with the memory of the machine, to twice what is
// needed here. These are megabytes; what large answers take lies outside of them. So small a young
// generation is collected sooner by one thread than by several that wait for one another.
import { defineCommand, runCommand, showUsage } from 'citty'
import { BlobFault } from '../src/blobs/blobs.ts'
import { MasterKeyRefused } from '../src/blobs/master-keys.ts'
import { SealBroken } from '../src/blobs/sealing.ts'
import { SettingRefused } from '../src/config.ts'
import { EmbeddedError } from '../src/embedded/embedded.ts'
import { ReapplyFailed } from '../src/erasure/reapply.ts'
import { ReceiptRefused } from '../src/erasure/receipts.ts'
import { isUnavailable } from '../src/error-handler.ts'
import { DatabaseRefused } from '../src/migrate.ts'
import { JobFailed, UsageError } from './command.ts'
import { erase } from './erase.ts'
import { jobs } from './jobs.ts'
import { keys } from './keys.ts'
import { members } from './members.ts'
import { migrate } from './migrate.ts'
import { projects } from './projects.ts'
import { reapply } from './reapply.ts'
import { receipt } from './receipt.ts'
import { serve } from './serve.ts'
import { worker } from './worker.ts'

const lethe = defineCommand({
  meta: {
    name: 'lethe',
    description: 'Person records and provable erasure for session recording.',
  },
  subCommands: { serve, worker, migrate, projects, keys, members, erase, jobs, receipt, reapply },
})

/** Ends with 0 when done, 1 when it failed, 2 when it was called wrongly, 3 when a job failed. */
async function main(words: string[]): Promise<number> {
  if (words.length === 0 || words.includes('--help') || words.includes('-h')) {
    await showUsage(...(await commandNamedBy(words)))
    return words.length === 0 ? 2 : 0
  }
  try {
    await runCommand(lethe, { rawArgs: words })
    return 0
  } catch (error) {
    return report(error)
  }
}

async function commandNamedBy(words: string[]): Promise<Parameters<typeof showUsage>> {
  let command: Parameters<typeof showUsage>[0] = lethe as never
  let parent: Parameters<typeof showUsage>[1]
  for (const word of words) {
    const next = (command.subCommands as Record<string, never> | undefined)?.[word]
    if (!next) break
    parent = command
    command = next
  }
  return [command, parent]
}

function report(error: unknown): number {
  const { message, code, name } = error as Error & { code?: string }
  if (error instanceof UsageError || code?.startsWith('E_') || name === 'CLIError') {
    process.stderr.write(`lethe: ${message}\n`)
    return 2
  }
  if (error instanceof JobFailed) {
    process.stderr.write(`lethe: ${message}\n`)
    return 3
  }
  const isForOperators =
    error instanceof SettingRefused ||
    error instanceof BlobFault ||
    error instanceof MasterKeyRefused ||
    error instanceof ReapplyFailed ||
    error instanceof ReceiptRefused ||
    error instanceof DatabaseRefused ||
    error instanceof EmbeddedError
  if (isForOperators) process.stderr.write(`lethe: ${message}\n`)
  else if (error instanceof SealBroken && error.reason === 'master_key_unknown') {
    process.stderr.write(
      `lethe: ${message} It sealed what is in this database: put it back into MASTER_KEY or DATA_DIR/keys/master-key. docs/recordings.md says what is lost without it.\n`,
    )
  } else if (code === 'EADDRINUSE') {
    process.stderr.write('lethe: The port is taken by another program; set PORT to a free one.\n')
  } else if (code === 'EACCES') {
    process.stderr.write('lethe: This port or folder may not be used by this user.\n')
  } else if (/^(?:28|3D)/.test(code ?? '') || isUnavailable(error)) {
    process.stderr.write(
      `lethe: The database of DATABASE_URL cannot be reached (${code ?? 'no answer'}): check the address, the user and the password.\n`,
    )
  } else {
    // A fault of ours: its words may hold data of the database, so only its place is told.
    const frames = (error as Error).stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? []
    process.stderr.write(`lethe: ${name} ${code ?? ''}\n${frames.slice(0, 8).join('\n')}\n`)
  }
  return 1
}

process.exitCode = await main(process.argv.slice(2))
