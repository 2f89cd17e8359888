/** What keeps the built-in database from running, in one line fit to be shown to an operator. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

/** It was not installed, as by `npm install --omit=optional`. */
export class EmbeddedMissing extends EmbeddedError {
  override name = 'EmbeddedMissing'
}
