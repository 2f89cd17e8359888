const CHARACTERS_MAXIMUM = 200

/**
 * What stands for nobody in applications, or is what a bug put in place of an id. Taken as one, it
 * would make one person of many visitors.
 */
const NOBODY =
  /^(anon(ymous)?|guest|user|visitor|unknown|nobody|none|null|nil|undefined|nan|true|false|n\/?a|[-0]+1?|infinity|\[object \w+\]|\$?\{.*\}|%.*%|<.*>)?$/i

/** Why this can be nobody's id; nothing where it can. */
export function whyNobody(userId: unknown): string | undefined {
  if (typeof userId !== 'string') return 'no text'
  if ([...userId].length > CHARACTERS_MAXIMUM) return 'too long'
  return NOBODY.test(userId.trim()) ? 'names nobody' : undefined
}
