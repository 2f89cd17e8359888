import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The subfolders of a folder, which may be empty, and its files. */
export interface Tree {
  places: string[]
  files: Map<string, Buffer>
}

export function treeOf(folder: string): Tree {
  const tree: Tree = { places: [], files: new Map() }
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const key = path.slice(folder.length + 1)
    if (entry.isDirectory()) tree.places.push(key)
    else tree.files.set(key, readFileSync(path))
  }
  return tree
}

export async function restoreTree(folder: string, { places, files }: Tree): Promise<void> {
  for (const name of readdirSync(folder)) {
    await rm(join(folder, name), { recursive: true, force: true })
  }
  for (const place of places) await mkdir(join(folder, place), { recursive: true })
  for (const [key, bytes] of files) await writeFile(join(folder, key), bytes)
}
