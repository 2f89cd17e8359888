/*
 * How the recorder sees calls of natives. Unlike rrweb's own wrappers these run the native outside
 * of every guard, so that it throws to the page what it throws; they tell of a call that worked;
 * and they leave alone what others have put over them (build/rrweb.ts puts them in).
 */

import { elapsed } from './page-natives.ts'

type Seen = (self: object, input: unknown[]) => void
type Owner = Record<string, unknown>

interface Spy {
  seen: Seen | undefined
}

/** Those that others have covered: they are used again, so that there is only ever one. */
const covered = new WeakMap<object, Record<string, Spy>>()

/** Tells of each call of `owner[name]` that worked; returns how to end that. */
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
        // Asked for its source it says what is below it: feature detection looks at that.
        get: (target, key) => (key === 'toString' ? () => `${target}` : Reflect.get(target, key)),
      })
  if (wrapper) (owner as Owner)[name] = wrapper
  return () => {
    own.seen = undefined
    if (wrapper && (owner as Owner)[name] === wrapper) (owner as Owner)[name] = native
    else covered.set(owner, { ...covered.get(owner), [name]: own })
  }
}

/** The same for a property that is set, or that is read where `isReadToo`. */
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

/** Whatever goes wrong in what is told of stays there: this runs inside the page's own calls. */
function tell({ seen }: Spy, self: object, input: unknown[]) {
  try {
    seen?.(self, input)
  } catch {}
}

export const together = (ends: (() => void)[]) => () => {
  for (const end of ends) end()
}

interface Ids {
  getId(of: unknown): number
}

/** What rrweb hands to its observers, as far as these need it. */
interface Observed {
  mirror: Ids
  stylesheetManager: { styleMirror: Ids }
  styleSheetRuleCb(change: object): void
  styleDeclarationCb(change: object): void
}

type Guard = (run: Seen) => Seen

/** Rules that come and go, in style sheets and in rules that hold others. */
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

/** Declarations that change in a rule; those of an element are attributes. */
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
 * Controls that the page sets, each told of once for as often as it is set in one task: a page
 * may set 20,000 in one go. `later` runs something in a task of its own.
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

/** Roots whose list of style sheets is set, or taken out: then the page may change it in place. */
export function spyOnAdopted(win: Window & typeof globalThis, seen: Seen) {
  const owners = [win.Document, win.ShadowRoot]
  return together(
    owners.map(({ prototype }) => spyOnSetter(prototype, 'adoptedStyleSheets', seen, true)),
  )
}

/** How long one task may keep the page waiting. A task over 50 ms is felt. */
const SLICE_MILLISECONDS = 8

const sheetOf = (rule: object) => (rule as CSSRule).parentStyleSheet

/** By what the recording knows a style sheet; nothing where it does not. */
function idsOf({ mirror, stylesheetManager }: Observed, sheet: object | null) {
  if (!sheet) return undefined
  const { ownerNode } = sheet as CSSStyleSheet
  const id = ownerNode ? mirror.getId(ownerNode) : undefined
  const styleId = ownerNode ? undefined : stylesheetManager.styleMirror.getId(sheet)
  return (id ?? styleId ?? -1) > 0 ? { id, styleId } : undefined
}

/** Where a rule stands: its index, and before it those of the rules it is in. */
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
