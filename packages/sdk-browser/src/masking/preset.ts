import type { MaskingPreset } from '../api.ts'

export const LEVELS = { open: 0, balanced: 1, strict: 2 } as const satisfies Record<
  MaskingPreset,
  number
>

export interface Masking {
  preset: MaskingPreset
  /** Whether `data-lethe-unmask` has an effect: not if the project is stricter than the page. */
  unmask: boolean
}

/** Returns the stricter of the page's and the project's presets. */
export function tightest(page: MaskingPreset, project: MaskingPreset): Masking {
  const isStricter = LEVELS[project] > LEVELS[page]
  return { preset: isStricter ? project : page, unmask: !isStricter }
}
