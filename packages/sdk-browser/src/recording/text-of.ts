/** Like `JSON.stringify`, but without `toJSON`, which some libraries add to all arrays. */
export function textOf(value: unknown): string {
  if (!('toJSON' in Object.prototype || 'toJSON' in [])) return JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${Array.from(value, textOf).join()}]`
  const members: string[] = []
  for (const name of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[name]
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${textOf(member)}`)
  }
  return `{${members.join()}}`
}
