import { defineCommand } from 'citty'
import { createProjectWithKeys, listProjects } from '../src/projects/store.ts'
import { isName, json, print, printTable, UsageError, withDatabase } from './command.ts'

const create = defineCommand({
  meta: { name: 'create', description: 'Create a project with a secret key and a public key.' },
  args: { name: { type: 'positional', required: true, description: 'Its name.' }, json },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      if (!isName(args.name)) throw new UsageError('A name has 1 to 200 characters.')
      const made = await db.begin((tx) => createProjectWithKeys(tx, args.name))
      const { project, secretKey, publicKey } = made
      if (args.json) {
        const { id, name } = project
        print(JSON.stringify({ project: { id: String(id), name }, secretKey, publicKey }))
        return
      }
      print(`Project ${project.id} "${project.name}". Its keys are shown only once:`)
      print(`  secret key  ${secretKey}   (for your backend, never in a page)`)
      print(`  public key  ${publicKey}   (for the browser SDK)`)
    }),
})

const list = defineCommand({
  meta: { name: 'list', description: 'List the projects.' },
  args: { json },
  run: ({ args }) =>
    withDatabase(async ({ db }) => {
      const projects = (await listProjects(db.sql)).map((one) => ({ ...one, id: String(one.id) }))
      if (args.json) print(JSON.stringify({ projects }))
      else printTable(projects, { id: 'ID', name: 'NAME', createdAt: 'CREATED' })
    }),
})

export const projects = defineCommand({
  meta: { name: 'projects', description: 'Create and list projects.' },
  subCommands: { create, list },
})
