import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { openEmbedded } from '../src/embedded/embedded.ts'
import { migrate } from '../src/migrate.ts'
import { connectOne, type DbAddress } from '../src/sql.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server the tests run on, and the migrated database they clone. */
    postgres: DbAddress
  }
}

/**
 * One PostgreSQL for all test files: the embedded one, or that of LETHE_TEST_DATABASE_URL (a
 * superuser's). A template database has all migrations; each test file clones it.
 */
export default async function setup(project: TestProject) {
  const folder = mkdtempSync(join(tmpdir(), 'lethe-test-'))
  const url = process.env.LETHE_TEST_DATABASE_URL
  const embedded = url ? undefined : await openEmbedded({ dataDir: folder })
  const server = embedded?.address ?? addressOf(new URL(url as string))
  const template = `lethe_template_${process.pid}`
  const { client, end } = await connectOne(server)
  await client.query(`create database ${template} template template0 encoding 'UTF8'`)
  await migrate({ ...server, database: template })
  project.provide('postgres', { ...server, database: template })
  return async () => {
    await client.query(`drop database ${template} with (force)`)
    await end()
    await embedded?.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

function addressOf(url: URL): DbAddress {
  return {
    host: url.searchParams.get('host') ?? url.hostname,
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    database: url.pathname.slice(1),
    ...(url.password && { password: decodeURIComponent(url.password) }),
  }
}
