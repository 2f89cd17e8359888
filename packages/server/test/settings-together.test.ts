import {
  createKey,
  getProject,
  listKeys,
  updateKey,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { createWebhook, listWebhooks, updateWebhook } from '@lethe/contract/dashboard-webhooks.ts'
import { describe, expect } from 'vitest'
import { test } from './dashboard-fixtures.ts'

/** How often two changes are made at once: each pair is another order of the two. */
const rounds = 12

describe('two changes of different settings at the same time', () => {
  test('of a key are both made', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const { key } = (await owner.call(createKey, { params, body: { kind: 'public', name: 'a' } }))
      .body
    const path = { ...params, keyId: key.id }
    for (let round = 0; round < rounds; round++) {
      const name = `name ${round}`
      const allowedOrigins = [`https://shop${round}.example`]
      await Promise.all([
        owner.call(updateKey, { params: path, body: { name } }),
        owner.call(updateKey, { params: path, body: { allowedOrigins } }),
      ])
      const { keys } = (await owner.call(listKeys, { params })).body
      expect(keys.find(({ id }) => id === key.id)).toMatchObject({ name, allowedOrigins })
    }
    await owner.call(updateKey, { params: path, body: { allowedOrigins: null } })
    const { keys } = (await owner.call(listKeys, { params })).body
    expect(keys.find(({ id }) => id === key.id)?.allowedOrigins).toBeNull()
  })

  test('of a webhook are all made', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    const body = { url: 'https://hooks.example.com/', events: ['person.deletion.failed' as const] }
    const { webhook } = (await owner.call(createWebhook, { params, body })).body
    const path = { ...params, webhookId: webhook.id }
    for (let round = 0; round < rounds; round++) {
      const url = `https://hooks.example.com/${round}`
      const isEnabled = round % 2 === 1
      const events = [
        round % 2 ? ('person.deletion.completed' as const) : ('person.deletion.failed' as const),
      ]
      await Promise.all([
        owner.call(updateWebhook, { params: path, body: { url } }),
        owner.call(updateWebhook, { params: path, body: { isEnabled } }),
        owner.call(updateWebhook, { params: path, body: { events } }),
      ])
      const [found] = (await owner.call(listWebhooks, { params })).body.webhooks
      expect(found).toMatchObject({ url, isEnabled, events })
    }
  })

  test('of a project are both made', async ({ dashboard }) => {
    const owner = await dashboard.member('owner')
    const params = { projectId: dashboard.projectId }
    for (let round = 0; round < rounds; round++) {
      const name = `Shop ${round}`
      const retentionDays = round + 1
      await Promise.all([
        owner.call(updateProject, { params, body: { name } }),
        owner.call(updateProject, { params, body: { retentionDays } }),
      ])
      const { project } = (await owner.call(getProject, { params })).body
      expect(project).toMatchObject({ name, retentionDays })
    }
  })
})
