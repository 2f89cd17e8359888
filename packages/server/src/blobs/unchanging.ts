import { BlobMissing, type Blobs } from './blobs.ts'

/**
 * Returns a store that behaves like `blobs` when written to and deleted from, but leaves `blobs`
 * unchanged: for a dry run. Writes are kept in memory.
 */
export function unchanging(blobs: Blobs): Blobs {
  const written = new Map<string, Uint8Array>()
  const deleted = new Set<string>()
  const prefixes = new Set<string>()
  const isGone = (key: string) =>
    deleted.has(key) || [...prefixes].some((prefix) => key.startsWith(prefix))
  const list = async function* (prefix: string) {
    for (const key of written.keys()) if (key.startsWith(prefix)) yield key
    for await (const key of blobs.list(prefix)) if (!written.has(key) && !isGone(key)) yield key
  }
  return {
    open: async () => {},
    async put(key, bytes) {
      deleted.delete(key)
      written.set(key, bytes)
    },
    async get(key, signal) {
      const bytes = written.get(key)
      if (bytes) return bytes
      if (isGone(key)) throw new BlobMissing()
      return blobs.get(key, signal)
    },
    async delete(keys) {
      for (const key of keys) {
        written.delete(key)
        deleted.add(key)
      }
    },
    async deletePrefix(prefix) {
      const removed = { blobs: (await Array.fromAsync(list(prefix))).length, bytes: 0 }
      for (const key of written.keys()) if (key.startsWith(prefix)) written.delete(key)
      prefixes.add(prefix)
      return removed
    },
    isEmpty: async (prefix) => (await list(prefix).next()).done === true,
    async visit(prefix, onKeys) {
      for await (const key of list(prefix)) await onKeys([key])
    },
    list,
    check: () => blobs.check(),
    close: () => blobs.close(),
  }
}
