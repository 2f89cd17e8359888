import type { Scenario } from './scenario.ts'
import { scenariosOfPacks } from './scenarios-of-packs.ts'
import { scenariosOfPersons } from './scenarios-of-persons.ts'
import { scenariosOfPersonsTogether } from './scenarios-of-persons-together.ts'
import { scenariosOfRetention } from './scenarios-of-retention.ts'
import { scenariosOfStatements } from './scenarios-of-statements.ts'
import { scenariosOfUploads } from './scenarios-of-uploads.ts'
import { scenariosOfWorkers } from './scenarios-of-workers.ts'

/** All scenarios. */
export const scenarios: Scenario[] = [
  ...scenariosOfPersons,
  ...scenariosOfUploads,
  ...scenariosOfPacks,
  ...scenariosOfWorkers,
  ...scenariosOfPersonsTogether,
  ...scenariosOfRetention,
  ...scenariosOfStatements,
]
