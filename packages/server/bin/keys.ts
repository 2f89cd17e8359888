import { defineCommand } from 'citty'
import { isUuid } from '../src/http/parameters.ts'
import { findKeySettings } from '../src/projects/settings-store.ts'
import { createKey, listKeys, originOf, revokeKey } from '../src/projects/store.ts'
import { setAllowedOrigins } from '../src/recordings/ingest-store.ts'
import {
  existingProject,
  isName,
  json,
  print,
  printTable,
  project,
  secondsOf,
  UsageError,
  withDatabase,
} from './command.ts'

const create = defineCommand({
  meta: { name: 'create', description: 'Create a key. It is shown only once.' },
  args: {
    project,
    kind: { type: 'string', required: true, description: 'secret or public.' },
    name: {
      type: 'string',
      required: true,
      description: 'A name, for example what the key is for.',
    },
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const { kind, name } = args
      if (kind !== 'secret' && kind !== 'public') {
        throw new UsageError('--kind must be secret or public.')
      }
      if (!isName(name)) throw new UsageError('A name has 1 to 200 characters.')
      const { id } = await existingProject(opened, args.project)
      const { key, text } = await createKey(opened.db.sql, id, kind, name)
      if (args.json) print(JSON.stringify({ key: { ...key, projectId: String(id) }, text }))
      else print(`Key ${key.id} of project ${id}. It is shown only once:\n  ${text}`)
    }),
})

const list = defineCommand({
  meta: { name: 'list', description: 'List the keys of a project.' },
  args: { project, json },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const { id } = await existingProject(opened, args.project)
      const keys = await listKeys(opened.db.sql, id)
      if (args.json) {
        print(JSON.stringify({ keys: keys.map((key) => ({ ...key, projectId: String(id) })) }))
        return
      }
      printTable(
        keys.map((key) => ({ ...key, end: key.revokedAt ?? key.expiresAt ?? '' })),
        {
          id: 'ID',
          kind: 'KIND',
          name: 'NAME',
          last4: 'LAST 4',
          lastUsedAt: 'LAST USED',
          end: 'END',
        },
      )
    }),
})

const revoke = defineCommand({
  meta: { name: 'revoke', description: 'Revoke a key, at once or after some time.' },
  args: {
    id: { type: 'positional', required: true, description: "The key's id." },
    in: { type: 'string', description: 'How long the key still works, as in 90s, 30m, 24h or 7d.' },
    json,
  },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      const overlapSeconds = args.in === undefined ? 0 : secondsOf(args.in)
      if (!isUuid(args.id) || !(await revokeKey(db.sql, args.id, overlapSeconds))) {
        throw new UsageError('There is no key with this id; `lethe keys list` shows them.')
      }
      if (args.json) print(JSON.stringify({ id: args.id, overlapSeconds }))
      else print(overlapSeconds === 0 ? 'Revoked.' : `Ends in ${args.in}.`)
    }),
})

const origins = defineCommand({
  meta: {
    name: 'origins',
    description: 'Show or set the origins (sites) that may use a public key.',
  },
  args: {
    id: { type: 'positional', required: true, description: "The key's id." },
    origins: {
      type: 'positional',
      required: false,
      description: 'Origins, such as https://shop.example or https://*.example.com.',
    },
    any: { type: 'boolean', description: 'Allow any origin.' },
    project,
    json,
  },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const { sql } = opened.db
      const { id: projectId } = await existingProject(opened, args.project)
      const key = isUuid(args.id) ? await findKeySettings(sql, projectId, args.id) : undefined
      if (key?.kind !== 'public') {
        throw new UsageError(
          'There is no public key with this id; `lethe keys list` shows the keys of a project.',
        )
      }
      const [, ...given] = args._
      if (args.any && given.length > 0) throw new UsageError('Give origins or --any, not both.')
      let allowed = key.allowedOrigins
      if (args.any || given.length > 0) {
        allowed = args.any ? null : [...new Set(given.map(existingOrigin))]
        await setAllowedOrigins(sql, projectId, key.id, allowed)
      }
      if (args.json) print(JSON.stringify({ id: key.id, allowedOrigins: allowed }))
      else print(allowed === null ? 'Any origin.' : allowed.join('\n'))
    }),
})

function existingOrigin(text: string): string {
  const origin = originOf(text)
  if (origin !== undefined) return origin
  throw new UsageError('An origin is a scheme and a host, as in https://shop.example.')
}

export const keys = defineCommand({
  meta: { name: 'keys', description: 'Create, list, limit and revoke the keys of a project.' },
  subCommands: { create, list, origins, revoke },
})
