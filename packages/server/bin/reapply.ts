import { defineCommand } from 'citty'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { print, withDatabase } from './command.ts'
import { withErasure } from './open-erasure.ts'

export const reapply = defineCommand({
  meta: {
    name: 'reapply',
    description: 'Erase again whoever a restored backup brought back, as serve does at its start.',
  },
  args: { json: { type: 'boolean', description: 'One line of JSON.' } },
  run: ({ args }) =>
    withDatabase((opened) =>
      withErasure(
        opened,
        createLog('error', process.stderr),
        createMetrics(),
        async ({ options }) => {
          const { entries, persons, browsers } = await reapplyLedger(options)
          if (args.json) {
            print(JSON.stringify({ entries, persons, browsers }))
            return
          }
          print(`The ledger has ${entries} entries.`)
          print(`Erased again: ${persons} persons, and ${browsers} browsers without a person.`)
        },
      ),
    ),
})
