import { quiet } from '../quiet.ts'
import { listen } from '../recording/page-natives.ts'

const VALUES_MAXIMUM = 100
const FIELDS_MAXIMUM = 500
/** A shorter one would hide letters of every word. */
const CHARACTERS_MINIMUM = 3
const FIELD =
  'input:not([type=button],[type=submit],[type=reset],[type=checkbox],[type=radio]),textarea'

/**
 * What is typed stays out of recordings, also where the page prints it or throws it. Remembers what
 * was typed on this page, in memory alone.
 */
export function watchTyped() {
  /** Of each field the last value, which the page may have emptied since. */
  const fields = new Map<EventTarget, string>()
  const changed = new Set<string>()
  const note = quiet((event: Event) => {
    const target = event.composedPath()[0] as HTMLInputElement | undefined
    const value = target?.value ?? (target?.isContentEditable ? target.textContent : undefined)
    if (!target || typeof value !== 'string') return
    fields.delete(target)
    fields.set(target, value)
    first(fields, VALUES_MAXIMUM)
    if (event.type !== 'change') return
    changed.add(value)
    first(changed, VALUES_MAXIMUM)
  })
  const ends = ['input', 'change'].map((type) => listen(window, type, note, { capture: true }))
  return {
    /** The longest first. */
    values() {
      const values = new Set([...fields.values(), ...changed])
      const found = document.querySelectorAll<HTMLInputElement>(FIELD)
      for (let at = 0; at < Math.min(found.length, FIELDS_MAXIMUM); at++) {
        values.add(found[at]?.value ?? '')
      }
      return [...values]
        .map((value) => value.trim())
        .filter((value) => value.length >= CHARACTERS_MINIMUM)
        .sort((a, b) => b.length - a.length)
    },
    end() {
      for (const end of ends) end()
    },
  }
}

/** Lets the oldest go where there are too many. */
function first(of: Map<unknown, unknown> | Set<unknown>, maximum: number) {
  if (of.size > maximum) of.delete(of.keys().next().value)
}
