import type { MaskingPreset } from '../api.ts'

export const LEVELS = { open: 0, balanced: 1, strict: 2 } as const satisfies Record<
  MaskingPreset,
  number
>
export type Level = (typeof LEVELS)[MaskingPreset]

export interface Masking {
  preset: MaskingPreset
  /** Whether `data-lethe-unmask` counts: not where the project is stricter than the page asked. */
  unmask: boolean
}

/** The stricter of what the page asks for and what the project demands. */
export function tightest(page: MaskingPreset, project: MaskingPreset): Masking {
  const tightened = LEVELS[project] > LEVELS[page]
  return { preset: tightened ? project : page, unmask: !tightened }
}
