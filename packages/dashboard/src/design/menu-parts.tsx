import { CSPProvider } from '@base-ui/react/csp-provider'
import { Menu as Base } from '@base-ui/react/menu'
import { type ReactElement, type ReactNode, useRef } from 'react'
import { Icon, type IconName } from './icon.tsx'

/** Opens at once: it is only built when somebody wants it. */
export function OpenMenu({
  trigger,
  children,
  align = 'end',
  side = 'bottom',
}: {
  trigger: ReactElement<Record<string, unknown>>
  children: ReactNode
  align?: 'start' | 'end'
  side?: 'top' | 'bottom'
}) {
  const button = useRef<HTMLButtonElement>(null)
  return (
    <CSPProvider disableStyleElements>
      <Base.Root modal={false} defaultOpen>
        <Base.Trigger ref={button} render={trigger} />
        <Base.Portal>
          <Base.Positioner sideOffset={6} align={align} side={side} className="z-50">
            {/* It was opened from the plain button that stood here before. */}
            <Base.Popup
              finalFocus={button}
              className="max-h-[70dvh] min-w-52 overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-high outline-none"
            >
              {children}
            </Base.Popup>
          </Base.Positioner>
        </Base.Portal>
      </Base.Root>
    </CSPProvider>
  )
}

const item =
  'flex min-h-8 w-full items-center gap-2.5 rounded-md px-2.5 py-1 text-left outline-none select-none data-highlighted:bg-sunken'

export function MenuItem({
  icon,
  tone,
  children,
  ...rest
}: Base.Item.Props & { icon?: IconName; tone?: 'danger' }) {
  return (
    <Base.Item {...rest} className={`${item} ${tone === 'danger' ? 'text-danger' : ''}`}>
      {icon && <Icon name={icon} className={`size-4 ${tone ? '' : 'text-muted'}`} />}
      <span className="min-w-0 flex-1 truncate">{children}</span>
    </Base.Item>
  )
}

export function MenuChoice<T extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string
  value: T
  choices: { value: T; label: string }[]
  onChange: (value: T) => void
}) {
  return (
    <Base.RadioGroup value={value} onValueChange={onChange} aria-label={label}>
      <MenuHeading>{label}</MenuHeading>
      {choices.map((choice) => (
        <Base.RadioItem key={choice.value} value={choice.value} className={item}>
          <span className="min-w-0 flex-1 truncate">{choice.label}</span>
          <Base.RadioItemIndicator>
            <Icon name="check" className="size-4 text-accent" />
          </Base.RadioItemIndicator>
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  )
}

export function MenuHeading({ children }: { children: ReactNode }) {
  return <div className="px-2.5 pt-1.5 pb-1 text-xs font-medium text-muted">{children}</div>
}

export function MenuLine() {
  return <Base.Separator className="mx-1 my-1 h-px bg-line" />
}
