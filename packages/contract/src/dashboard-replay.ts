/*
 * How the page of the replay frame is sealed off; the server serves it so, the dashboard builds it.
 *
 * The dashboard's build gives `replay.html` (a second entry beside index.html). The server answers it
 * at /replay, in which recordings are played by @rrweb/replay inside the frame that library makes
 * (sandbox="allow-same-origin", so without scripts). The dashboard embeds it as an iframe, fetches the
 * events itself, and hands them over by a MessagePort: the frame's own page can make no request.
 *
 * Its policy is this one, and the library's about:blank frame inherits it. The nonce is made for
 * each answer, and the server writes it into every <script> and <link> of replay.html; modules
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
