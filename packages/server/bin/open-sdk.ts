import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Blobs } from '../src/blobs/blobs.ts'
import type { Log } from '../src/log.ts'
import { publishSdk, readSdk, type Sdk } from '../src/recordings/sdk-files.ts'

const folder = join(import.meta.dirname, '../../sdk-browser')

const buildSeconds = 120

/**
 * Builds the browser SDK if needed, and publishes its files for pages that name its version. Returns
 * undefined if it cannot be built; everything else works without it.
 */
export async function openSdk(blobs: Blobs, log: Log): Promise<Sdk | undefined> {
  const dist = join(folder, 'dist')
  let sdk = await readSdk(dist)
  if (!sdk && (await canBuild())) {
    try {
      await promisify(execFile)(process.execPath, [join(folder, 'build.ts')], {
        timeout: buildSeconds * 1_000,
      })
      sdk = await readSdk(dist)
    } catch (error) {
      log.fault('sdk.build', error)
    }
  }
  if (sdk) await publishSdk(blobs, sdk)
  return sdk
}

/** Whether this is a clone with its development dependencies. */
async function canBuild(): Promise<boolean> {
  try {
    await access(join(folder, 'build.ts'))
    import.meta.resolve('@rrweb/record')
    return true
  } catch {
    return false
  }
}
