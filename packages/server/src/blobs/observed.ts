import { BlobFault, type Blobs } from './blobs.ts'

/** Part of the caller's work, and no fault of the store. */
const expected = new Set(['blob_missing', 'prefix_gone', 'aborted', 'invalid_key'])

/** The same store; `onFault` hears the code of each fault of it. */
export function observed(blobs: Blobs, onFault: (code: string) => void): Blobs {
  const note = (error: unknown): never => {
    const code = error instanceof BlobFault ? error.code : 'failed'
    if (!expected.has(code)) onFault(code)
    throw error
  }
  return {
    open: (prefix) => blobs.open(prefix).catch(note),
    put: (key, bytes, signal) => blobs.put(key, bytes, signal).catch(note),
    get: (key, signal) => blobs.get(key, signal).catch(note),
    delete: (keys, signal) => blobs.delete(keys, signal).catch(note),
    deletePrefix: (prefix, options) => blobs.deletePrefix(prefix, options).catch(note),
    visit: (prefix, onKeys, signal) => blobs.visit(prefix, onKeys, signal).catch(note),
    isEmpty: (prefix, signal) => blobs.isEmpty(prefix, signal).catch(note),
    async *list(prefix) {
      try {
        yield* blobs.list(prefix)
      } catch (error) {
        note(error)
      }
    },
    check: () => blobs.check().catch(note),
    close: () => blobs.close(),
  }
}
