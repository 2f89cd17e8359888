import { type Permission, permissions, type Role } from '@lethe/contract/dashboard-members.ts'

const viewer: Permission[] = ['projects.read', 'persons.read', 'sessions.read', 'deletions.read']
const member: Permission[] = [
  ...viewer,
  'persons.write',
  'sessions.annotate',
  'keys.read',
  'members.read',
]
/** Deleting persons goes by no role: it is given to each member or not. */
const all = permissions.filter((one) => one !== 'persons.delete')

/** What each role may do. That only owners touch owners is a rule of its own: see mayManage. */
const permissionsOfRole: Record<Role, readonly Permission[]> = {
  owner: all,
  admin: all,
  member,
  viewer,
}

export interface Rights {
  role: Role
  mayDeletePersons: boolean
}

export function permissionsOf({ role, mayDeletePersons }: Rights): Permission[] {
  const ofRole = permissionsOfRole[role]
  return permissions.filter(
    (one) => ofRole.includes(one) || (one === 'persons.delete' && mayDeletePersons),
  )
}

/**
 * Whether `acting`, who has members.write, may give these rights, take them away, or make a link by
 * which somebody comes to have them: nobody gives more than they have, and only an owner is above
 * owners.
 */
export function mayManage(acting: Rights, rights: Rights): boolean {
  if (acting.role === 'owner') return true
  return rights.role !== 'owner' && (acting.mayDeletePersons || !rights.mayDeletePersons)
}
