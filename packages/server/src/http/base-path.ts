/** The path of PUBLIC_URL, as in `/lethe`; empty if it has none. */
export function basePathOf(publicUrl: string): string {
  return publicUrl === '' ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')
}

/**
 * Takes the base path off a request's target, in both of its forms. A proxy may have done so before:
 * targets without it are left as they are.
 */
export function withoutBasePath(basePath: string): (target: string) => string {
  const before = new RegExp(`^(https?://[^/?#]*)?${basePath.replaceAll('.', '\\.')}(?=[/?#]|$)/?`)
  return (target) => target.replace(before, (_, origin = '') => `${origin}/`)
}
