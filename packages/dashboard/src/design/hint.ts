/*
 * Words beside a control that the pointer or the keyboard is on: whatever has `data-hint`. They only
 * repeat, for the eye, what the control's name or description says. One element for the whole page,
 * so that a table of a thousand rows pays nothing for its buttons' hints.
 */

const delayMilliseconds = 350
const distance = 6

export function startHints(): void {
  const hint = document.createElement('div')
  hint.popover = 'manual'
  hint.ariaHidden = 'true'
  hint.className = 'hint'
  document.body.append(hint)
  let timer: ReturnType<typeof setTimeout> | undefined
  let shownFor: Element | null = null

  const hide = () => {
    clearTimeout(timer)
    shownFor = null
    if (hint.matches(':popover-open')) hint.hidePopover()
  }
  const show = (target: HTMLElement) => {
    hint.textContent = target.dataset.hint ?? ''
    hint.showPopover()
    place(hint, target.getBoundingClientRect())
  }
  const consider = (target: EventTarget | null, delay: number) => {
    const control = (target as Element | null)?.closest?.<HTMLElement>('[data-hint]') ?? null
    if (control === shownFor) return
    hide()
    shownFor = control
    if (control) timer = setTimeout(() => show(control), delay)
  }
  document.addEventListener('pointerover', ({ target, pointerType }) => {
    if (pointerType === 'mouse') consider(target, delayMilliseconds)
  })
  document.addEventListener('focusin', ({ target }) => {
    if ((target as Element).matches(':focus-visible')) consider(target, delayMilliseconds)
  })
  document.addEventListener('focusout', hide)
  document.addEventListener('scroll', hide, { capture: true, passive: true })
  document.addEventListener('keydown', ({ key }) => key === 'Escape' && hide())
  document.addEventListener('click', ({ target }) => {
    const control = (target as Element).closest<HTMLElement>('[data-hint]')
    hide()
    // What was done may have changed the words, as in "Copied".
    if (control) {
      shownFor = control
      timer = setTimeout(
        () => control.isConnected && control.matches(':hover') && show(control),
        80,
      )
    }
  })
}

function place(hint: HTMLElement, control: DOMRect): void {
  const { width, height } = hint.getBoundingClientRect()
  const isRoomAbove = control.top > height + distance * 2
  const top = isRoomAbove ? control.top - height - distance : control.bottom + distance
  const middle = control.left + control.width / 2 - width / 2
  const left = Math.min(Math.max(middle, distance), innerWidth - width - distance)
  hint.style.top = `${top}px`
  hint.style.left = `${left}px`
}
