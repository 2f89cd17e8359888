/** Whether a text can be the internal id of a person: a number that PostgreSQL's bigint takes. */
export function isPersonId(text: string): boolean {
  return /^[1-9]\d{0,18}$/.test(text) && BigInt(text) < 2n ** 63n
}
