/*
 * How the recorder observes calls of native functions (build/rrweb.ts installs these). Unlike
 * rrweb's wrappers, they run the native function unguarded, so that the page gets its errors; they
 * report only calls that succeeded; and they do not undo wrappers that others put over them.
 */

import { elapsed, SLICE_MILLISECONDS, together } from './page-natives.ts'

type Seen = (self: object, input: unknown[]) => void
type Owner = Record<string, unknown>

interface Spy {
  seen: Seen | undefined
}

/** Spies that others have wrapped. They are reused, so that there is only one of each. */
const covered = new WeakMap<object, Record<string, Spy>>()

/** Reports each successful call of `owner[name]`. Returns a function that ends this. */
export function spy(owner: object, name: string, seen: Seen): () => void {
  const native = (owner as Owner)[name]
  if (typeof native !== 'function') return () => {}
  const known = covered.get(owner)?.[name]
  const own: Spy = known ?? { seen }
  own.seen = seen
  const wrapper = known
    ? undefined
    : new Proxy(native, {
        apply(target, self, input) {
          const result = Reflect.apply(target, self, input)
          tell(own, self, input)
          return result
        },
        // Its source is that of the native function: feature detection checks it.
        get: (target, key) => (key === 'toString' ? () => `${target}` : Reflect.get(target, key)),
      })
  if (wrapper) (owner as Owner)[name] = wrapper
  return () => {
    own.seen = undefined
    if (wrapper && (owner as Owner)[name] === wrapper) (owner as Owner)[name] = native
    else covered.set(owner, { ...covered.get(owner), [name]: own })
  }
}

/** The same for setting a property and, if `isReadToo`, reading it. */
export function spyOnSetter(
  owner: object,
  name: string,
  seen: Seen,
  isReadToo = false,
): () => void {
  const native = Object.getOwnPropertyDescriptor(owner, name)
  if (!native?.set || !native.configurable) return () => {}
  const { get: getNative, set: setNative } = native
  const known = covered.get(owner)?.[name]
  const own: Spy = known ?? { seen }
  own.seen = seen
  const set = function (this: object, value: unknown) {
    setNative.call(this, value)
    tell(own, this, [value])
  }
  const get = function (this: object) {
    const value = getNative?.call(this)
    tell(own, this, [])
    return value
  }
  if (!known) Object.defineProperty(owner, name, { ...native, ...(isReadToo && { get }), set })
  return () => {
    own.seen = undefined
    if (!known && Object.getOwnPropertyDescriptor(owner, name)?.set === set) {
      Object.defineProperty(owner, name, native)
    } else covered.set(owner, { ...covered.get(owner), [name]: own })
  }
}

/** Ignores errors of `seen`: this runs within calls of the page. */
function tell({ seen }: Spy, self: object, input: unknown[]) {
  try {
    seen?.(self, input)
  } catch {}
}

interface Ids {
  getId(of: unknown): number
}

/** What rrweb passes to its observers, as far as it is needed here. */
interface Observed {
  mirror: Ids
  stylesheetManager: { styleMirror: Ids }
  styleSheetRuleCb(change: object): void
  styleDeclarationCb(change: object): void
}

type Guard = (run: Seen) => Seen

/** Observes rules that are added and removed, in style sheets and in grouping rules. */
export function spyOnSheets(of: Observed, win: Window & typeof globalThis, guard: Guard) {
  const on = (owner: object, name: string, change: (self: never, input: never) => object) =>
    spy(
      owner,
      name,
      guard((self, input) => {
        const ids = idsOf(of, 'cssRules' in self && 'ownerNode' in self ? self : sheetOf(self))
        if (ids) of.styleSheetRuleCb({ ...ids, ...change(self as never, input as never) })
      }),
    )
  const { CSSStyleSheet, CSSGroupingRule, CSSStyleRule } = win
  const sheet = CSSStyleSheet.prototype
  const ends = [
    on(sheet, 'insertRule', (_, [rule, index]: [string, number]) => ({ adds: [{ rule, index }] })),
    on(sheet, 'deleteRule', (_, [index]: [number]) => ({ removes: [{ index }] })),
    on(sheet, 'removeRule', (_, [index = 0]: [number]) => ({ removes: [{ index }] })),
    on(
      sheet,
      'addRule',
      (self: CSSStyleSheet, [selector, style, index]: [string, string, number]) => ({
        adds: [{ rule: `${selector} { ${style} }`, index: index ?? self.cssRules.length - 1 }],
      }),
    ),
    on(sheet, 'replace', (_, [replace]: [string]) => ({ replace })),
    on(sheet, 'replaceSync', (_, [replaceSync]: [string]) => ({ replaceSync })),
  ]
  for (const rules of [CSSGroupingRule?.prototype, CSSStyleRule?.prototype]) {
    if (!rules || !Object.hasOwn(rules, 'insertRule')) continue
    ends.push(
      on(rules, 'insertRule', (self: CSSRule, [rule, index = 0]: [string, number]) => ({
        adds: [{ rule, index: [...placeOf(self), index] }],
      })),
      on(rules, 'deleteRule', (self: CSSRule, [index]: [number]) => ({
        removes: [{ index: [...placeOf(self), index] }],
      })),
    )
  }
  return together(ends)
}

/** Observes changes of declarations in rules; those of elements are attributes. */
export function spyOnDeclarations(of: Observed, win: Window & typeof globalThis, guard: Guard) {
  const on = (name: string, change: (input: unknown[]) => object) =>
    spy(
      win.CSSStyleDeclaration.prototype,
      name,
      guard((self, input) => {
        const rule = (self as CSSStyleDeclaration).parentRule
        const ids = rule && idsOf(of, rule.parentStyleSheet)
        if (ids) of.styleDeclarationCb({ ...ids, ...change(input), index: placeOf(rule) })
      }),
    )
  return together([
    on('setProperty', ([property, value, priority]) => ({ set: { property, value, priority } })),
    on('removeProperty', ([property]) => ({ remove: { property } })),
  ])
}

/**
 * Observes controls that the page sets, reporting each once per task: a page may set 20,000 at
 * once. `later` runs a function in its own task.
 */
export function spyOnInputs(
  win: (Window & typeof globalThis) | null,
  changed: (control: object) => void,
  later: (run: () => void) => void,
) {
  const waiting = new Set<object>()
  const run = () => {
    const until = elapsed() + SLICE_MILLISECONDS
    for (const control of waiting) {
      waiting.delete(control)
      changed(control)
      if (elapsed() > until) break
    }
    if (waiting.size) later(run)
  }
  const seen: Seen = (control) => {
    if (!waiting.size) later(run)
    waiting.add(control)
  }
  if (!win) return () => {}
  const { HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement, HTMLOptionElement } = win
  const ends = [
    ...['value', 'checked'].map((name) => spyOnSetter(HTMLInputElement.prototype, name, seen)),
    ...['value', 'selectedIndex'].map((name) =>
      spyOnSetter(HTMLSelectElement.prototype, name, seen),
    ),
    spyOnSetter(HTMLTextAreaElement.prototype, 'value', seen),
    spyOnSetter(HTMLOptionElement.prototype, 'selected', seen),
  ]
  return () => {
    together(ends)()
    waiting.clear()
  }
}

/** Observes adopted style sheets being set or read: the page may then change them in place. */
export function spyOnAdopted(win: Window & typeof globalThis, seen: Seen) {
  const owners = [win.Document, win.ShadowRoot]
  return together(
    owners.map(({ prototype }) => spyOnSetter(prototype, 'adoptedStyleSheets', seen, true)),
  )
}

const sheetOf = (rule: object) => (rule as CSSRule).parentStyleSheet

/** The IDs of a style sheet in the recording; undefined if it has none. */
function idsOf({ mirror, stylesheetManager }: Observed, sheet: object | null) {
  if (!sheet) return undefined
  const { ownerNode } = sheet as CSSStyleSheet
  const id = ownerNode ? mirror.getId(ownerNode) : undefined
  const styleId = ownerNode ? undefined : stylesheetManager.styleMirror.getId(sheet)
  return (id ?? styleId ?? -1) > 0 ? { id, styleId } : undefined
}

/** The position of a rule: its index, preceded by those of the rules that contain it. */
function placeOf(rule: CSSRule | null): number[] {
  const place: number[] = []
  for (let at = rule; at; at = at.parentRule) {
    const list =
      (at.parentRule as CSSGroupingRule | null)?.cssRules ?? at.parentStyleSheet?.cssRules
    let index = 0
    while (list && list[index] !== at && index < list.length) index++
    place.unshift(index)
  }
  return place
}
