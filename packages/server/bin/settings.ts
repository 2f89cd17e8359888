import { readFileSync } from 'node:fs'
import { type Config, readConfig, SettingRefused, secretSettings } from '../src/config.ts'

/** Reads the settings. A secret may be in a file that NAME_FILE names, as container secrets are. */
export function readSettings(): Config {
  const environment = { ...process.env }
  for (const name of secretSettings) {
    const file = environment[`${name}_FILE`]
    if (!file) continue
    if (environment[name]) throw new SettingRefused(`Set ${name} or ${name}_FILE, not both.`)
    try {
      environment[name] = readFileSync(file, 'utf8').trim()
    } catch (error) {
      const { code } = error as { code?: string }
      throw new SettingRefused(`The file named by ${name}_FILE cannot be read (${code}).`)
    }
  }
  return readConfig(environment)
}
