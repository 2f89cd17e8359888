import { defineCommand } from 'citty'
import { jsonLines, print, withDatabase } from './command.ts'
import { compareLedger } from './compare-ledger.ts'
import { withErasure } from './open-erasure.ts'
import { withProgress } from './progress.ts'

export const reapply = defineCommand({
  meta: {
    name: 'reapply',
    description:
      'Erase again all people whom a restored backup brought back, as serve does at start.',
  },
  args: { json: jsonLines },
  run: ({ args }) =>
    withDatabase((opened) =>
      withErasure(opened, async (erasure) => {
        const reapplied = await withProgress(args.json, ({ step }) =>
          compareLedger(opened, erasure, false, step('Comparing with the ledger of erasures')),
        )
        if (args.json) {
          print(JSON.stringify(reapplied))
          return
        }
        const { entries, persons, browsers, refused, missing } = reapplied
        print(`The ledger has ${entries} entries since the last comparison.`)
        print(`Erased again: ${persons} persons, and ${browsers} browsers without a person.`)
        if (refused > 0) print(`Ignored entries that are not genuine: ${refused}.`)
        if (missing > 0) print(`Erasures without an entry: ${missing}.`)
      }),
    ),
})
