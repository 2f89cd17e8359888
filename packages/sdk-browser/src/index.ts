import type { Lethe } from './api.ts'
import { createLethe } from './lethe.ts'

export type {
  Consent,
  IdentifyOptions,
  Lethe,
  MaskingPreset,
  Options,
  Pages,
  Signals,
  Start,
} from './api.ts'

export const lethe: Lethe = /* @__PURE__ */ createLethe(
  () => import('./recording/recording.ts'),
  () => import('./more/more.ts'),
)
