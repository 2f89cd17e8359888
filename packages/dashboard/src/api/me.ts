import { getMe, type Member, type Permission } from '@lethe/contract/dashboard-members.ts'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { send } from './call.ts'
import { reading } from './queries.ts'

export const meQuery = {
  ...reading(getMe, {}),
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const me = await send(getMe, {}, signal)
    if (me.member) lastMember = me.member
    return me
  },
  staleTime: 30_000,
}

let lastMember: Member | undefined

/** Who was signed in last in this page, also where the sign-in has ended since. */
export function memberOfPage(): Member | undefined {
  return lastMember
}

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
  'persons.write': 'Your role can view people but not change them.',
  'persons.delete': 'You need permission to delete people. Ask an owner or admin.',
  'keys.write': 'Only owners and admins can create or revoke keys.',
  'webhooks.write': 'Only owners and admins can change webhooks.',
  'members.write': 'Only owners and admins can change members.',
  'projects.write': 'Only owners and admins can change the project.',
}
