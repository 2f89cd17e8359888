import { defineCommand } from 'citty'
import { writeAudit } from '../src/members/audit-store.ts'
import { makeResetLink, makeSetUpLink } from '../src/members/links.ts'
import { findMemberByEmail, listMembers } from '../src/members/store.ts'
import { json, print, printTable, UsageError, withDatabase } from './command.ts'
import type { Opened } from './open.ts'

const list = defineCommand({
  meta: { name: 'list', description: 'List the members.' },
  args: { json },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      const members = await listMembers(db.sql)
      if (args.json) print(JSON.stringify({ members }))
      else {
        printTable(members, { id: 'ID', email: 'EMAIL', role: 'ROLE', lastSignInAt: 'SIGNED IN' })
      }
    }),
})

const link = defineCommand({
  meta: {
    name: 'link',
    description: 'Create a one-time link for the first owner, or for a member who is locked out.',
  },
  args: {
    email: { type: 'positional', required: false, description: "The member's email." },
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
    if (made === undefined)
      throw new UsageError("There is already an owner; give a member's email.")
    return made
  }
  const member = await findMemberByEmail(db.sql, email.toLowerCase())
  if (!member) throw new UsageError('There is no such member; `lethe members list` shows them.')
  const who = { memberId: member.id, madeBy: null }
  const { link } = await db.begin((tx) => makeResetLink(tx, address, who))
  const subject = { kind: 'member', id: member.id } as const
  const actor = { memberId: null, addressRange: null }
  await writeAudit(db.sql, { ...actor, action: 'member.reset_link_made', subject })
  return link
}

export const members = defineCommand({
  meta: { name: 'members', description: 'List members, and create links for those locked out.' },
  subCommands: { list, link },
})
