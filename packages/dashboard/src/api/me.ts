import { getMe, type Permission } from '@lethe/contract/dashboard-members.ts'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { reading } from './queries.ts'

export const meQuery = { ...reading(getMe, {}), staleTime: 30_000 }

/** Who is signed in; only for what is shown once that is known. */
export function useMe() {
  const { data } = useSuspenseQuery(meQuery)
  return data
}

/** Whether the member may do this. The server holds it on each request; pages only say so first. */
export function useMay(permission: Permission): boolean {
  return useQuery(meQuery).data?.permissions.includes(permission) ?? false
}

export const needsPermission: Partial<Record<Permission, string>> = {
  'persons.write': 'Your role can look at persons but not change them.',
  'persons.delete':
    'You need the permission to delete persons. An owner or admin can give it to you.',
  'keys.write': 'Only owners and admins can make or end keys.',
  'webhooks.write': 'Only owners and admins can change webhooks.',
  'members.write': 'Only owners and admins can change members.',
  'projects.write': 'Only owners and admins can change the project.',
}
