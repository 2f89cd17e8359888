import { getProjectSummary, listProjects } from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { liveMilliseconds, reading } from './queries.ts'

export const projectsQuery = { ...reading(listProjects, {}), staleTime: 60_000 }

/** The project of the address; for what is shown inside of one. */
export function useProjectId(): string {
  return useParams({ from: '/signed-in/projects/$projectId' }).projectId
}

/** How the deletions of the project stand, live. */
export function useSummary() {
  const projectId = useProjectId()
  return useQuery({
    ...reading(getProjectSummary, { params: { projectId } }),
    refetchInterval: liveMilliseconds,
  })
}
