/** What a bug puts in place of an id. Taken as one, it would make one person of many. */
const NOBODY = ['', 'undefined', 'null', 'NaN', '[object Object]']
const CHARACTERS_MAXIMUM = 200

/** Whether this can be somebody's id: text of 1 to 200 characters that names somebody. */
export function isUserId(userId: unknown): userId is string {
  return (
    typeof userId === 'string' &&
    !NOBODY.includes(userId) &&
    [...userId].length <= CHARACTERS_MAXIMUM
  )
}
