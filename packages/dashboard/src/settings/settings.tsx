import type { Permission } from '@lethe/contract/dashboard-members.ts'
import { Outlet, useLocation } from '@tanstack/react-router'
import { useMe } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkTab, LinkTabs } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'

interface SettingsPage {
  path: 'keys' | 'members' | 'privacy' | 'webhooks' | 'audit' | 'system'
  label: string
  needed?: Permission
}

const pages: SettingsPage[] = [
  { path: 'keys', label: 'Keys', needed: 'keys.read' },
  { path: 'members', label: 'Members', needed: 'members.read' },
  { path: 'privacy', label: 'Privacy' },
  { path: 'webhooks', label: 'Webhooks', needed: 'webhooks.read' },
  { path: 'audit', label: 'Audit log', needed: 'audit.read' },
  { path: 'system', label: 'System', needed: 'system.read' },
]

export function Settings() {
  const params = { projectId: useProjectId() }
  const { permissions } = useMe()
  const mine = pages.filter(({ needed }) => needed === undefined || permissions.includes(needed))
  const [, part = ''] = useLocation().pathname.split('/settings/')
  const page = pages.find(({ path }) => path === part.split('/')[0])
  return (
    <div className="mx-auto w-full max-w-[64rem] px-4 py-6 sm:px-8">
      <h1 className="pb-2">Settings</h1>
      <div className="mb-5 border-b border-line">
        <LinkTabs label="Settings">
          {mine.map(({ path, label }) => (
            <LinkTab key={path} to={`/projects/$projectId/settings/${path}`} params={params}>
              {label}
            </LinkTab>
          ))}
        </LinkTabs>
      </div>
      {page === undefined || mine.includes(page) ? <Outlet /> : <Forbidden />}
    </div>
  )
}

/** A page whose address somebody knows who may not see it. */
function Forbidden() {
  return (
    <div className="card">
      <Empty icon="shield" title="Your role does not allow this page">
        Ask an owner or admin if you need it.
      </Empty>
    </div>
  )
}
