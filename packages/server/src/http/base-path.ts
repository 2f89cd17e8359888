/** The path of PUBLIC_URL, as in `/lethe`; empty if it has none. */
export function basePathOf(publicUrl: string): string {
  return publicUrl === '' ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')
}

/**
 * Removes the base path from a request's target, which is a path or a URL. A proxy may already have
 * removed it.
 */
export function withoutBasePath(basePath: string): (target: string) => string {
  const before = new RegExp(`^(https?://[^/?#]*)?${basePath.replaceAll('.', '\\.')}(?=[/?#]|$)/?`)
  return (target) => target.replace(before, (_, origin = '') => `${origin}/`)
}
