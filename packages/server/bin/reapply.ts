import { defineCommand } from 'citty'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { print, withDatabase } from './command.ts'
import { openErasure } from './open-erasure.ts'
import { openStorage } from './open-storage.ts'

export const reapply = defineCommand({
  meta: {
    name: 'reapply',
    description: 'Erase again whoever a restored backup brought back, as serve does at its start.',
  },
  args: { json: { type: 'boolean', description: 'One line of JSON.' } },
  run: ({ args }) =>
    withDatabase(async (opened) => {
      const storage = await openStorage(opened)
      const erasure = await openErasure(opened, storage, createLog('error'), createMetrics())
      try {
        const { entries, persons, browsers } = await reapplyLedger(erasure.options)
        if (args.json) print(JSON.stringify({ entries, persons, browsers }))
        else {
          print(`The ledger has ${entries} entries.`)
          print(`Erased again: ${persons} persons, and ${browsers} browsers without a person.`)
        }
      } finally {
        await erasure.close()
        await storage.close()
      }
    }),
})
