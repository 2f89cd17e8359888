import { defineCommand } from 'citty'
import { type Config, secretSettings } from '../src/config.ts'
import { json, print, printTable } from './command.ts'
import { readSettings } from './settings.ts'

export const config = defineCommand({
  meta: { name: 'config', description: 'Show the settings in force, without secrets.' },
  args: { json },
  run: ({ args }) => {
    const shown = Object.entries(readSettings()).map(([setting, value]) => ({
      setting,
      value: shownValue(setting, value),
    }))
    if (args.json) {
      print(JSON.stringify(Object.fromEntries(shown.map((one) => [one.setting, one.value]))))
    } else printTable(shown, { setting: 'SETTING', value: 'VALUE' })
  },
})

/** Shows a URL without its user and password. */
function shownValue(setting: string, value: Config[keyof Config]): string {
  const text = Array.isArray(value) ? value.join(',') : String(value ?? '')
  if (text === '' || !(secretSettings as readonly string[]).includes(setting)) return text
  if (!URL.canParse(text) || setting === 'MASTER_KEY') return '(set)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//…@${host}${pathname}`
}
