/** What keeps the built-in database from running, in one line fit to be shown to an operator. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}
