import { quiet } from '../quiet.ts'
import { listen, together } from '../recording/page-natives.ts'

const VALUES_MAXIMUM = 100
const FIELDS_MAXIMUM = 500
/** A shorter value would hide parts of unrelated words. */
const CHARACTERS_MINIMUM = 3
const FIELD =
  'input:not([type=button],[type=submit],[type=reset],[type=checkbox],[type=radio]),textarea'

/**
 * Remembers, only in memory, what was typed on this page, so that it can be masked if the page
 * prints or throws it.
 */
export function watchTyped() {
  /** The last value of each field; the page may have cleared the field since. */
  const fields = new Map<EventTarget, string>()
  const changed = new Set<string>()
  const note = quiet((event: Event) => {
    const target = event.composedPath()[0] as HTMLInputElement | undefined
    const value = target?.value ?? (target?.isContentEditable ? target.textContent : undefined)
    if (!target || typeof value !== 'string') return
    fields.delete(target)
    fields.set(target, value)
    trim(fields, VALUES_MAXIMUM)
    if (event.type !== 'change') return
    changed.add(value)
    trim(changed, VALUES_MAXIMUM)
  })
  const ends = ['input', 'change'].map((type) => listen(window, type, note, { capture: true }))
  return {
    /** Returns all values, the longest first. */
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
    end: together(ends),
  }
}

/** Removes the oldest entry if there are too many. */
function trim(of: Map<unknown, unknown> | Set<unknown>, maximum: number) {
  if (of.size > maximum) of.delete(of.keys().next().value)
}
