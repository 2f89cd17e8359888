import type { Lethe } from './api.ts'
import { createLethe } from './lethe.ts'

export type { Consent, IdentifyOptions, Lethe, MaskingPreset, Options } from './api.ts'

export const lethe: Lethe = /* @__PURE__ */ createLethe(() => import('./recording/recording.ts'))
