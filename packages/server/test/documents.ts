import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../../..')

export const pages = readdirSync(join(root, 'docs'))
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)

export const readPage = (path: string) => readFileSync(join(root, path), 'utf8')

/** The blocks of a page that are marked so, as in `sh` or `js webhook`. */
export function blocksOf(path: string, mark: string): string[] {
  const blocks = readPage(path).matchAll(/^```([^\n]*)\n(.*?)^```$/gms)
  return [...blocks].filter(([, found]) => found === mark).map(([, , text = '']) => text)
}

/** The only block that is marked so. */
export function blockOf(path: string, mark: string): string {
  const [block, ...others] = blocksOf(path, mark)
  if (block === undefined || others.length > 0) throw new Error(`${path}: not one block ${mark}`)
  return block
}
