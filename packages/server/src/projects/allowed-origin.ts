/**
 * An origin as browsers send it: no path, no port that is the scheme's own, in lower case.
 * `https://*.example.com` stands for all below example.com. Undefined where the text is none.
 */
export function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin =
    url !== undefined &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.pathname === '/' &&
    url.search === '' &&
    url.hash === ''
  return isOrigin ? url.origin : undefined
}
