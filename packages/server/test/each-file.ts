import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { aroundAll, expect, type RunnerTestSuite } from 'vitest'

/*
 * What holds for each test file: no two of its tests have one name, and it leaves nothing behind.
 *
 * Each test file has a temporary folder of its own, which the processes it starts inherit. What
 * still lies or runs there when all its tests and fixtures have ended fails the file.
 */

/** Processes that were told to end need some time; those that are there after this one do not end. */
const endSeconds = 10

const { TMPDIR } = process.env
// The name is short because the address of a socket is.
const folder = mkdtempSync(join(tmpdir(), 't-'))
// If we are root, some of what runs in it is another user's.
chmodSync(folder, 0o755)
process.env.TMPDIR = folder

// biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
aroundAll(async (run, {}, file) => {
  await run()
  let processes = processesOf(folder)
  for (const end = Date.now() + endSeconds * 1_000; processes.length > 0; ) {
    if (Date.now() > end) break
    await sleep(20)
    processes = processesOf(folder)
  }
  const files = readdirSync(folder)
  // The next file that this worker runs has one beside it.
  process.env.TMPDIR = TMPDIR
  for (const { pid } of processes) process.kill(pid, 'SIGKILL')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  expect(processes, 'processes that this file started and did not end').toEqual([])
  expect(files, 'what this file left in the folder for temporary files').toEqual([])
  expect(repeatedNames(file), 'names that two tests of this file have').toEqual([])
})

/** Those that have the folder in their environment or command line, or work in it. Linux only. */
function processesOf(folder: string): { pid: number; command: string }[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const command = read(() => readFileSync(`/proc/${name}/cmdline`, 'utf8'))
      const others = [
        () => readFileSync(`/proc/${name}/environ`, 'utf8'),
        () => readlinkSync(`/proc/${name}/cwd`),
      ]
      const isMine = [command, ...others.map(read)].some((text) => text.includes(folder))
      return isMine && command !== '' ? [{ pid: Number(name), command }] : []
    })
}

/** Empty if the process is gone or another user's. */
function read(file: () => string): string {
  try {
    return file()
  } catch {
    return ''
  }
}

function repeatedNames(file: RunnerTestSuite): string[] {
  const names = namesIn(file)
  return names.filter((name, index) => names.indexOf(name) !== index)
}

const namesIn = ({ tasks }: RunnerTestSuite): string[] =>
  tasks.flatMap((task) =>
    task.type === 'suite' ? namesIn(task).map((name) => `${task.name} > ${name}`) : [task.name],
  )
