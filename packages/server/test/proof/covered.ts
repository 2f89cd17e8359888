/** What the exploration covers. Run `npm run test:deep -- proof` after a change of it. */
export const covered = [
  'packages/server/src/erasure/',
  'packages/server/src/retention/',
  'packages/server/src/recordings/identify.ts',
  'packages/server/src/recordings/chunk-writer.ts',
  'packages/server/src/recordings/ingest-store.ts',
  'packages/server/src/recordings/pack.ts',
  'packages/server/src/recordings/pack-store.ts',
  'packages/server/src/recordings/upload.ts',
  'packages/server/src/recordings/removal.ts',
  'packages/server/src/recordings/browser-keys.ts',
  'packages/server/src/persons/store.ts',
  'packages/server/src/persons/writer.ts',
  'packages/server/src/together.ts',
  'packages/server/migrations/',
]

export const isCovered = (path: string) => covered.some((one) => path.startsWith(one))
