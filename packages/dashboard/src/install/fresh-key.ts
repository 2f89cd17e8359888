/*
 * The secret key of a project that was just made, until the page is left: it is shown once, in the
 * tab about the backend, and written down nowhere.
 */

const keys = new Map<string, string>()

export function keepFreshKey(projectId: string, secretKey: string): void {
  keys.set(projectId, secretKey)
}

export function freshKey(projectId: string): string | undefined {
  return keys.get(projectId)
}
