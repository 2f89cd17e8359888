import { CSPProvider } from '@base-ui/react/csp-provider'
import { Dialog as Base } from '@base-ui/react/dialog'
import { type ReactNode, useRef } from 'react'
import { IconButton } from './button.tsx'

export interface DialogProps {
  isOpen: boolean
  onClose: () => void
  title: ReactNode
  description?: ReactNode
  children: ReactNode
  width?: 'narrow' | 'wide'
}

const backdrop =
  'fixed inset-0 bg-scrim transition-opacity duration-150 data-ending-style:opacity-0 data-starting-style:opacity-0'

/** A question over the page: the rest waits until it is answered or closed. */
export function OpenDialog({ isOpen, onClose, title, description, children, width }: DialogProps) {
  const body = useRef<HTMLDivElement>(null)
  return (
    <CSPProvider disableStyleElements>
      <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
        <Base.Portal>
          <Base.Backdrop className={`unprinted z-40 ${backdrop}`} />
          <Base.Viewport className="fixed inset-0 z-40 grid items-start justify-items-center overflow-y-auto px-3 py-[6dvh]">
            <Base.Popup
              initialFocus={(how) => how === 'touch' || firstControl(body.current)}
              className={`w-full rounded-xl border border-line bg-raised shadow-high transition-[opacity,transform] duration-150 data-ending-style:opacity-0 data-starting-style:translate-y-1 data-starting-style:opacity-0 ${width === 'wide' ? 'max-w-2xl' : 'max-w-[30rem]'}`}
            >
              <header className="flex items-start justify-between gap-4 pt-5 pr-3.5 pl-5">
                <Base.Title className="line-clamp-4 min-w-0 pt-0.5 text-lg font-semibold tracking-[-0.01em] wrap-anywhere">
                  {title}
                </Base.Title>
                <Base.Close render={<IconButton label="Close" icon="close" />} />
              </header>
              {description && (
                <Base.Description className="px-5 pt-1 text-pretty text-muted">
                  {description}
                </Base.Description>
              )}
              <div ref={body} className="px-5 pt-4 pb-5">
                {children}
              </div>
            </Base.Popup>
          </Base.Viewport>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}

/** Where an answer begins, which is not the cross that closes the dialog. */
function firstControl(body: HTMLElement | null): HTMLElement | null {
  const controls = 'input:not([type=radio]), input:checked, textarea, select, button'
  return body?.querySelector<HTMLElement>(controls) ?? null
}

/** Details beside a list that stays in sight. */
export function OpenDrawer({ isOpen, onClose, title, description, children }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  return (
    <CSPProvider disableStyleElements>
      <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
        <Base.Portal>
          <Base.Backdrop className={`unprinted z-40 ${backdrop}`} />
          <Base.Popup
            ref={popup}
            initialFocus={popup}
            className="drawer fixed inset-y-0 right-0 z-40 outline-none flex w-full max-w-[34rem] flex-col border-l border-line bg-raised shadow-high transition-transform duration-200 data-ending-style:translate-x-8 data-ending-style:opacity-0 data-starting-style:translate-x-8 data-starting-style:opacity-0"
          >
            <header className="flex items-start justify-between gap-4 border-b border-line py-3.5 pr-3.5 pl-5">
              <div className="min-w-0">
                <Base.Title className="text-lg font-semibold tracking-[-0.01em] wrap-anywhere">
                  {title}
                </Base.Title>
                {description && (
                  <Base.Description
                    render={<div />}
                    className="mt-1.5 flex flex-wrap items-center gap-2 text-sm text-muted"
                  >
                    {description}
                  </Base.Description>
                )}
              </div>
              <Base.Close render={<IconButton label="Close" icon="close" />} />
            </header>
            <div
              // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
              tabIndex={0}
              className="min-h-0 flex-1 overflow-y-auto px-5 py-5 focus-visible:-outline-offset-2"
            >
              {children}
            </div>
          </Base.Popup>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}

/** The navigation, where the window is too narrow to show it all the time. */
export function OpenSide({
  isOpen,
  onClose,
  children,
}: {
  isOpen: boolean
  onClose: () => void
  children: ReactNode
}) {
  return (
    <CSPProvider disableStyleElements>
      <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
        <Base.Portal>
          <Base.Backdrop className={`unprinted z-40 ${backdrop}`} />
          <Base.Popup className="fixed inset-y-0 left-0 z-40 flex w-[min(17rem,86vw)] flex-col border-r border-line bg-canvas shadow-high">
            <Base.Title className="sr-only">Menu</Base.Title>
            {children}
            <Base.Close className="sr-only">Close menu</Base.Close>
          </Base.Popup>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}
