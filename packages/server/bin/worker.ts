import { defineCommand } from 'citty'
import { reapplyLedger } from '../src/erasure/reapply.ts'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { print, signalled, withDatabase } from './command.ts'
import { withErasure } from './open-erasure.ts'
import { startWork } from './work.ts'

/** How long attempts may take to be handed back after a signal. */
const stopSeconds = 25

export const worker = defineCommand({
  meta: { name: 'worker', description: 'Run erasures only, beside `lethe serve --no-worker`.' },
  run: () =>
    withDatabase(async (opened) => {
      const log = createLog(opened.config.LOG_LEVEL)
      await withErasure(opened, log, createMetrics(), async (erasure) => {
        const { options } = erasure
        await reapplyLedger(options)
        const running = await startWork(opened, erasure, log)
        print(`Lethe works on deletion jobs, ${options.jobsAtOnce} at once`)
        await signalled()
        // What is cut off here is found by the next worker when its lease has ended.
        setTimeout(() => process.exit(1), stopSeconds * 1_000).unref()
        await running.stop()
      })
    }),
})
