/** Why the embedded database cannot run, in one line for an operator. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

/** It is not installed, for example after `npm install --omit=optional`. */
export class EmbeddedMissing extends EmbeddedError {
  override name = 'EmbeddedMissing'
}
