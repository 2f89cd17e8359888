import type { Blobs } from './blobs.ts'
export async function openBucket(_: { url: string; endpoint?: string }): Promise<Blobs> {
  throw new Error('wip')
}
