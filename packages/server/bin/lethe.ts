#!/usr/bin/env -S node --max-semi-space-size=8 --max-old-space-size=1024 --no-parallel-scavenge --v8-pool-size=1
// Without these limits, in MB, the heap would grow to twice what is needed. (Large responses are not
// part of it.) One thread collects a young generation of this size faster than several. More marking
// threads would take the processor from the thread that serves: while chunks of 1 MB arrive, the p99
// of a GET was 31 ms with four threads, and is 11 ms with one (bench/README, Attacks).
import { defineCommand, runCommand, type SubCommandsDef, showUsage } from 'citty'

const lethe = defineCommand({
  meta: {
    name: 'lethe',
    description: 'Person records and provable erasure for session recording.',
  },
  // Loaded when used, so that a short command does not load the web server.
  subCommands: {
    serve: async () => (await import('./serve.ts')).serve,
    worker: async () => (await import('./worker.ts')).worker,
    migrate: async () => (await import('./migrate.ts')).migrate,
    projects: async () => (await import('./projects.ts')).projects,
    keys: async () => (await import('./keys.ts')).keys,
    members: async () => (await import('./members.ts')).members,
    persons: async () => (await import('./persons.ts')).persons,
    erase: async () => (await import('./erase.ts')).erase,
    jobs: async () => (await import('./jobs.ts')).jobs,
    receipt: async () => (await import('./receipt.ts')).receipt,
    purge: async () => (await import('./purge.ts')).purge,
    reapply: async () => (await import('./reapply.ts')).reapply,
    recordings: async () => (await import('./recordings.ts')).recordings,
    audit: async () => (await import('./audit.ts')).audit,
    backup: async () => (await import('./backup.ts')).backup,
    restore: async () => (await import('./restore.ts')).restore,
    'upgrade-database': async () => (await import('./upgrade-database.ts')).upgradeDatabase,
    doctor: async () => (await import('./doctor.ts')).doctor,
    config: async () => (await import('./config.ts')).config,
  },
})

/** Exits with 0 on success, 1 on failure, 2 for invalid arguments, 3 if a job failed. */
async function main(words: string[]): Promise<number> {
  if (words.length === 0 || words.includes('--help') || words.includes('-h')) {
    await showUsage(...(await commandNamedBy(words)))
    return words.length === 0 ? 2 : 0
  }
  try {
    await runCommand(lethe, { rawArgs: words })
    return 0
  } catch (error) {
    // A group of commands, such as `lethe keys`, does nothing by itself.
    if (error instanceof Error && 'code' in error && error.code === 'E_NO_COMMAND') {
      await showUsage(...(await commandNamedBy(words)))
      return 2
    }
    const { report } = await import('./report.ts')
    return report(error)
  }
}

async function commandNamedBy(words: string[]): Promise<Parameters<typeof showUsage>> {
  let command: Parameters<typeof showUsage>[0] = lethe as never
  let parent: Parameters<typeof showUsage>[1]
  for (const word of words) {
    const next = (command.subCommands as SubCommandsDef | undefined)?.[word]
    if (!next) break
    parent = command
    command = await (typeof next === 'function' ? next() : next)
  }
  return [command, parent]
}

// A closed terminal must not end the process before it has closed everything.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
process.exitCode = await main(process.argv.slice(2))
// The channel to the supervisor would keep the process running.
if (process.connected) process.disconnect()
