import { spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRoot } from './account.ts'
import type { Cluster } from './cluster.ts'
import { markOf, postmasterOf, statusOf } from './postmaster.ts'
import { environment, run } from './run.ts'

/** How long to wait for an unused server to stop, and to report that it is stopping. */
const stopSeconds = 5
const noticeMilliseconds = 500

export interface Use {
  /** If this was the last use, the watcher stops the server. */
  release(): void
}

/**
 * Makes this process a user of the server until `release` or its end, even by kill -9. Each user
 * keeps a named pipe open for writing. A small watcher process reads it: it gets end-of-file when
 * the last user is gone, and stops the server.
 *
 * Without a shell for the watcher, the next start takes the server over.
 */
export async function useServer({ home, folder }: Cluster): Promise<Use> {
  const name = 'postgres.users'
  const pipe = `${home}/${name}`
  if (!existsSync(pipe)) {
    // If we are root, the owner of the data folder must be able to use it later.
    const { uid, gid } = statSync(home)
    const account = isRoot() ? { uid, gid } : undefined
    await run({ program: 'mkfifo', args: ['-m', '600', name], folder: home, account })
  }
  if (!existsSync(pipe)) return { release() {} }
  const handle = openForWriting(pipe) ?? startWatcher(pipe, folder)
  let isHeld = true
  return {
    release() {
      if (isHeld) closeSync(handle)
      isHeld = false
    },
  }
}

/** Undefined if nobody reads the pipe. */
function openForWriting(pipe: string): number | undefined {
  const { O_WRONLY, O_NONBLOCK } = constants
  try {
    return openSync(pipe, O_WRONLY | O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined
    throw error
  }
}

function startWatcher(pipe: string, folder: string): number {
  // Opening one end of a pipe waits for the other, except when both are opened at once.
  const both = openSync(pipe, constants.O_RDWR)
  const reading = openSync(pipe, constants.O_RDONLY)
  const handle = openSync(pipe, constants.O_WRONLY)
  const watcher = spawn('sh', ['-c', watch, 'lethe-watcher', folder, markOf(folder)], {
    cwd: '/',
    env: environment,
    stdio: [reading, 'ignore', 'ignore'],
    detached: true,
  })
  watcher.on('error', () => {})
  watcher.unref()
  closeSync(reading)
  closeSync(both)
  return handle
}

/** Checks that a process is still the server before it signals it: process IDs are reused. */
const watch = `
cat >/dev/null
pid=$(head -n 1 "$1/postmaster.pid" 2>/dev/null) || exit 0
is_server() {
  if [ -d /proc/self ]; then tr '\\0' ' ' <"/proc/$pid/cmdline"; else ps -ww -o command= -p "$pid"; fi \
    2>/dev/null | grep -qF "$2"
}
is_server "$@" || exit 0
kill -INT "$pid"
for second in 1 2 3 4 5 6 7 8 9 10; do
  sleep 1
  is_server "$@" || exit 0
done
kill -QUIT "$pid"`

/** Waits until the server, after its last user has left, stops. Returns if others still use it. */
export async function waitForUnused(folder: string): Promise<void> {
  const begin = performance.now()
  for (let waited = 0; waited < stopSeconds * 1_000; waited = performance.now() - begin) {
    if (postmasterOf(folder) === undefined) return
    if (waited > noticeMilliseconds && statusOf(folder) === 'ready') return
    await sleep(20)
  }
}
