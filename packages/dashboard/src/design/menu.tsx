import {
  type ComponentType,
  cloneElement,
  lazy,
  type ReactElement,
  type ReactNode,
  Suspense,
  useState,
} from 'react'
import type { IconName } from './icon.tsx'

/*
 * A menu is made of much code, and nobody opens one at first sight: until then its trigger is a
 * plain button, and the rest comes when the pointer or the focus gets there.
 */

const parts = () => import('./menu-parts.tsx')
const OpenMenu = lazy(async () => ({ default: (await parts()).OpenMenu }))

interface MenuItemProps {
  icon?: IconName
  tone?: 'danger'
  onClick: () => void
  children: ReactNode
}

interface MenuChoiceProps<T extends string> {
  label: string
  value: T
  choices: { value: T; label: string }[]
  onChange: (value: T) => void
}

export const MenuItem: ComponentType<MenuItemProps> = lazy(async () => ({
  default: (await parts()).MenuItem,
}))
export const MenuChoice = lazy(async () => ({
  default: (await parts()).MenuChoice as ComponentType<unknown>,
})) as unknown as <T extends string>(props: MenuChoiceProps<T>) => ReactElement
export const MenuLine: ComponentType = lazy(async () => ({ default: (await parts()).MenuLine }))

export function Menu({
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
  const [isWanted, setWanted] = useState(false)
  const closed = cloneElement(trigger, {
    'aria-haspopup': 'menu',
    'aria-expanded': false,
    onPointerEnter: parts,
    onFocus: parts,
    onClick: () => setWanted(true),
    onKeyDown: (event: React.KeyboardEvent) => {
      if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
      event.preventDefault()
      setWanted(true)
    },
  })
  if (!isWanted) return closed
  return (
    <Suspense fallback={closed}>
      <OpenMenu trigger={trigger} align={align} side={side}>
        {children}
      </OpenMenu>
    </Suspense>
  )
}
