import { defineCommand } from 'citty'
import { createLog } from '../src/log.ts'
import { createMetrics } from '../src/metrics.ts'
import { print, withDatabase } from './command.ts'
import { compareAndWatch, withoutLedger } from './compare-ledger.ts'
import { type OpenedErasure, withErasure } from './open-erasure.ts'
import { openOperations } from './open-operations.ts'
import { untilStopped } from './signals.ts'
import { startWork } from './work.ts'

export const worker = defineCommand({
  meta: {
    name: 'worker',
    description: 'Run erasures and other background work; for use with `lethe serve --no-worker`.',
  },
  args: withoutLedger,
  run: ({ args }) =>
    untilStopped((stop) =>
      withDatabase(async (opened) => {
        const log = createLog(opened.config.LOG_LEVEL)
        const metrics = createMetrics()
        const work = async (erasure: OpenedErasure) => {
          const { options } = erasure
          const comparing = compareAndWatch(opened, erasure, args['without-ledger'])
          const watch = await stop.unless(comparing)
          const operations = await openOperations(opened, erasure.storage, log, metrics)
          const running = await startWork(opened, erasure, log)
          if (operations.address) print(`Health and metrics are at ${operations.address}`)
          print(`Lethe works on deletion jobs, up to ${options.jobsAtOnce} at a time`)
          await stop.wait()
          await watch.stop()
          await Promise.all([running.stop(), operations.close()])
        }
        await withErasure(opened, work, log, metrics)
      }, stop),
    ),
})
