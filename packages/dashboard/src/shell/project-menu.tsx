import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay } from '../api/me.ts'
import { projectsQuery, useProjectId } from '../api/projects.ts'
import { Icon } from '../design/icon.tsx'
import { Menu, MenuChoice, MenuItem, MenuLine } from '../design/menu.tsx'
import { NewProjectDialog } from './new-project.tsx'

/** Which project is looked at, and the way to another. */
export function ProjectMenu() {
  const projectId = useProjectId()
  const navigate = useNavigate()
  const mayMake = useMay('projects.write')
  const [isMaking, setMaking] = useState(false)
  const { data } = useQuery(projectsQuery)
  const projects = data?.projects ?? []
  const name = projects.find((project) => project.id === projectId)?.name ?? 'Project'
  return (
    <>
      <Menu
        align="start"
        trigger={
          <button
            type="button"
            className="flex h-9 w-full items-center gap-2 rounded-md border border-line bg-surface px-2.5 text-left shadow-low hover:bg-hover"
          >
            <span className="sr-only">Project: </span>
            <span className="min-w-0 flex-1 truncate font-medium">{name}</span>
            <Icon name="chevronDown" className="size-3.5 text-muted" />
          </button>
        }
      >
        <MenuChoice
          label="Projects"
          value={projectId}
          choices={projects.map(({ id, name }) => ({ value: id, label: name }))}
          onChange={(id) =>
            void navigate({ to: '/projects/$projectId', params: { projectId: id } })
          }
        />
        {mayMake && (
          <>
            <MenuLine />
            <MenuItem icon="plus" onClick={() => setMaking(true)}>
              New project…
            </MenuItem>
          </>
        )}
      </Menu>
      <NewProjectDialog isOpen={isMaking} onClose={() => setMaking(false)} />
    </>
  )
}
