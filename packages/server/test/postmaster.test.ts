import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { postmasterOf } from '../src/embedded/postmaster.ts'

/** Writes and removes the file, with an id no process has, again and again, and ends by itself. */
const comesAndGoes = `
  const { rmSync, writeFileSync } = require('node:fs')
  console.log('begun')
  for (const end = Date.now() + 2_000; Date.now() < end; ) {
    writeFileSync(process.argv[1], '4194304\\n')
    rmSync(process.argv[1])
  }`

test('a server that stops while it is looked for counts as none, without an error', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-postmaster-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const child = spawn(process.execPath, ['-e', comesAndGoes, join(folder, 'postmaster.pid')])
  const end = once(child, 'exit')
  await once(child.stdout, 'data')
  const found = new Set<unknown>()
  for (let n = 0; n < 20_000; n++) found.add(postmasterOf(folder))
  expect([...found]).toEqual([undefined])
  expect(await end).toEqual([0, null])
})
