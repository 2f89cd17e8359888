import { signOut } from '@lethe/contract/dashboard-members.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { basePath } from '../api/base-path.ts'
import { forget, send } from '../api/call.ts'
import { meQuery } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { Icon } from '../design/icon.tsx'
import { Menu, MenuChoice, MenuItem, MenuLine } from '../design/menu.tsx'
import { sayFailed } from '../design/toast.tsx'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

export const roleNames = { owner: 'Owner', admin: 'Admin', member: 'Member', viewer: 'Viewer' }

/** Who is signed in, how the pages look, and the way out. */
export function MemberMenu() {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const leave = useSignOut()
  const { data } = useQuery(meQuery)
  const [theme, setTheme] = useState<Theme>(chosenTheme)
  const member = data?.member
  if (!member) return <div className="h-11" />
  return (
    <Menu
      align="start"
      side="top"
      trigger={
        <button
          type="button"
          className="flex w-full items-center gap-2.5 rounded-md px-2 py-1.5 text-left hover:bg-sunken"
        >
          <span
            aria-hidden="true"
            className="grid size-7 place-items-center rounded-full bg-accent-soft text-sm font-semibold text-accent"
          >
            {(member.name.trim()[0] ?? '?').toUpperCase()}
          </span>
          <span className="min-w-0 flex-1">
            <span className="block truncate text-sm leading-4 font-medium">{member.name}</span>
            <span className="block text-xs text-muted">{roleNames[member.role]}</span>
          </span>
          <Icon name="more" className="text-muted" />
        </button>
      }
    >
      <MenuItem
        icon="persons"
        onClick={() => void navigate({ to: '/projects/$projectId/account', params: { projectId } })}
      >
        Your account
      </MenuItem>
      <MenuLine />
      <MenuChoice
        label="Theme"
        value={theme}
        choices={[
          { value: 'system', label: 'System' },
          { value: 'light', label: 'Light' },
          { value: 'dark', label: 'Dark' },
        ]}
        onChange={(chosen) => {
          setTheme(chosen)
          chooseTheme(chosen)
        }}
      />
      <MenuLine />
      <MenuItem icon="signOut" onClick={() => void leave()}>
        Sign out
      </MenuItem>
    </Menu>
  )
}

/** Ends the sign-in, and everything the page still knows. */
function useSignOut(): () => Promise<void> {
  const queryClient = useQueryClient()
  return async () => {
    try {
      await send(signOut, { body: {} })
    } catch (error) {
      sayFailed('Sign-out failed', error)
      return
    }
    forget()
    queryClient.clear()
    // A whole load, so that nothing personal is left in the memory of the page.
    window.location.assign(`${basePath}/sign-in`)
  }
}
