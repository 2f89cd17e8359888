import {
  checkLink,
  getMe,
  resetPassword,
  setUp,
  signIn,
} from '@lethe/contract/dashboard-members.ts'
import { test as base, expect } from 'vitest'
import { newVisitor, password, refusalOf } from './dashboard-fixtures.ts'
import { greeting, newEnvironment, runLethe, startLethe } from './lethe-process.ts'

interface Installation {
  /** Starts the service; returns its URL and all it printed. */
  serve(): Promise<{ url: string; printed: string; stop(): Promise<void> }>
  run(...words: string[]): Promise<{ code: number; out: string; err: string }>
}

const test = base.extend<{ installation: Installation }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures off the pattern
  installation: async ({}, use) => {
    const env = await newEnvironment(undefined, { MASTER_KEY: '' })
    await use({
      async serve() {
        const { output, stop } = await startLethe(['serve'], env, /dashboard {2}http\S+\n/)
        const printed = output()
        const url = greeting.exec(printed)?.[1] ?? ''
        return { url, printed, stop: async () => void (await stop()) }
      },
      run: (...words) => runLethe(words, env),
    })
  },
})

const tokenIn = (text: string) => /#([\w-]{43})/.exec(text)?.[1] ?? ''
const owner = { name: 'Ada', email: 'ada@example.com', password, projectName: 'Shop' }

test('each start prints another set-up link until there is an owner; who is locked out gets one by the command', async ({
  installation,
}) => {
  const first = await installation.serve()
  const token = tokenIn(first.printed)
  expect(first.printed).toContain(`${first.url}/setup#${token}`)
  await first.stop()

  const second = await installation.serve()
  expect(tokenIn(second.printed)).not.toBe(token)
  const visitor = newVisitor(second.url)
  const printed = { token: tokenIn(second.printed), ...owner }
  expect((await visitor.call(setUp, { body: printed })).status).toBe(201)
  const used = visitor.call(checkLink, { body: { token } })
  expect((await refusalOf(used))?.code).toBe('link_invalid')

  expect(await installation.run('members', 'link')).toMatchObject({ code: 2 })
  expect(await installation.run('members', 'link', 'eve@example.com')).toMatchObject({ code: 2 })
  expect((await installation.run('members', 'list')).out).toMatch(/ada@example\.com +owner/)
  const { out } = await installation.run('members', 'link', 'Ada@Example.com')
  const newPassword = 'another horse battery staple'
  const stranger = newVisitor(second.url)
  await stranger.call(resetPassword, { body: { token: tokenIn(out), password: newPassword } })
  await stranger.call(signIn, { body: { email: owner.email, password: newPassword } })
  expect((await stranger.call(getMe, {})).body.member?.role).toBe('owner')
  await second.stop()

  const third = await installation.serve()
  expect(third.printed).not.toContain('/setup#')
  // Who is signed in stays so over a restart.
  const again = newVisitor(third.url)
  for (const [name, value] of stranger.cookies) again.cookies.set(name, value)
  expect((await again.call(getMe, {})).body.member?.name).toBe('Ada')
  await third.stop()
})
