import { defineCommand } from 'citty'
import { writeAudit } from '../src/dashboard/audit-store.ts'
import { makeResetLink, makeSetUpLink } from '../src/members/links.ts'
import { findMemberByEmail, listMembers } from '../src/members/store.ts'
import { print, printTable, UsageError, withDatabase } from './command.ts'
import type { Opened } from './open.ts'

const json = { type: 'boolean', description: 'One line of JSON.' } as const

const list = defineCommand({
  meta: { name: 'list', description: 'List the members.' },
  args: { json },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      const members = await listMembers(db.sql)
      if (args.json) print(JSON.stringify({ members }))
      else {
        printTable(members, { id: 'ID', email: 'E-MAIL', role: 'ROLE', lastSignInAt: 'SIGNED IN' })
      }
    }),
})

const link = defineCommand({
  meta: {
    name: 'link',
    description: 'Make a one-time link: for the first owner, or for a member who is locked out.',
  },
  args: {
    email: { type: 'positional', required: false, description: "The member's e-mail." },
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const made = await makeLink(opened, args.email)
      if (args.json) print(JSON.stringify({ link: made }))
      else print(`Works once, within 24 hours:\n  ${made}`)
    }),
})

async function makeLink({ db, config }: Opened, email: string | undefined): Promise<string> {
  const address = config.PUBLIC_URL || `http://${config.HOST}:${config.PORT}`
  if (email === undefined) {
    const made = await makeSetUpLink(db, address)
    if (made === undefined) throw new UsageError('There is an owner already; give an e-mail.')
    return made
  }
  const member = await findMemberByEmail(db.sql, email.toLowerCase())
  if (!member) throw new UsageError('There is no such member; `lethe members list` shows them.')
  const { link } = await makeResetLink(db, address, member.id)
  const subject = { kind: 'member', id: member.id } as const
  await writeAudit(db.sql, { action: 'member.reset_link_made', memberId: null, subject })
  return link
}

export const members = defineCommand({
  meta: { name: 'members', description: 'List members, and make links for those locked out.' },
  subCommands: { list, link },
})
