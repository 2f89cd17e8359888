/*
 * How the page of the replay frame is sealed off; the server serves it so, the dashboard builds it.
 *
 * The dashboard's build gives `replay.html` (a second entry beside index.html). The server sends it
 * at /replay, in which recordings are played by @rrweb/replay inside the frame that library makes
 * (sandbox="allow-same-origin", so without scripts). The dashboard embeds it as an iframe, fetches the
 * events itself, and hands them over by a MessagePort: the frame's own page can make no request.
 *
 * Its policy is this one, and the library's about:blank frame inherits it. The nonce is made for
 * each response, and the server writes it into every <script> and <link> of replay.html; modules
 * imported by such a script are covered by it too. Stylesheets have to stand in the page or come
 * from its script: `style-src 'self'` would let a recording make requests to this server.
 */
export const replayPath = '/replay'

export const replayPolicy = (nonce: string, ancestors: string) =>
  [
    // Forms, popups, dialogs, downloads and navigation of the top are off, also in frames within.
    'sandbox allow-scripts allow-same-origin',
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'unsafe-inline'",
    'img-src data: blob:',
    'media-src data: blob:',
    'font-src data:',
    "connect-src 'none'",
    "frame-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
    `frame-ancestors ${ancestors}`,
  ].join('; ')

/**
 * The headers that have the browser play a recording in a process of its own, where it can: what a
 * recording does there cannot hold the dashboard. The first works within one site, the second
 * within one origin.
 */
export const replayIsolation = {
  'origin-agent-cluster': '?1',
  'document-isolation-policy': 'isolate-and-credentialless',
} as const

/**
 * The page of the replay frame, for a dashboard that was asked for under this host. On loopback it
 * is that of the machine's other name, which is another site to a browser.
 */
export function replayUrlFor(configured: string, protocol: string, host: string): string {
  const other = configured === replayPath ? otherLoopback(host) : undefined
  return other === undefined ? configured : `${protocol}://${other}${replayPath}`
}

/** `localhost:3000` for `127.0.0.1:3000`, and the reverse; undefined where a host is neither. */
export function otherLoopback(host: string): string | undefined {
  const [, name, port = ''] = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.exec(host) ?? []
  if (name === undefined) return undefined
  return `${name.toLowerCase() === 'localhost' ? '127.0.0.1' : 'localhost'}${port}`
}
