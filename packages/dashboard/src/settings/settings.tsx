import { Outlet } from '@tanstack/react-router'
import { useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkTab, LinkTabs } from '../design/page.tsx'

export function Settings() {
  const params = { projectId: useProjectId() }
  const mayMembers = useMay('members.read')
  const mayAudit = useMay('audit.read')
  const maySystem = useMay('system.read')
  const mayWebhooks = useMay('webhooks.read')
  const mayKeys = useMay('keys.read')
  const base = '/projects/$projectId/settings'
  return (
    <div className="mx-auto w-full max-w-[64rem] px-4 py-6 sm:px-8">
      <h1 className="pb-2">Settings</h1>
      <div className="mb-5 border-b border-line">
        <LinkTabs label="Settings">
          {mayKeys && (
            <LinkTab to={`${base}/keys`} params={params}>
              Keys
            </LinkTab>
          )}
          {mayMembers && (
            <LinkTab to={`${base}/members`} params={params}>
              Members
            </LinkTab>
          )}
          <LinkTab to={`${base}/privacy`} params={params}>
            Privacy
          </LinkTab>
          {mayWebhooks && (
            <LinkTab to={`${base}/webhooks`} params={params}>
              Webhooks
            </LinkTab>
          )}
          {mayAudit && (
            <LinkTab to={`${base}/audit`} params={params}>
              Audit log
            </LinkTab>
          )}
          {maySystem && (
            <LinkTab to={`${base}/system`} params={params}>
              System
            </LinkTab>
          )}
        </LinkTabs>
      </div>
      <Outlet />
    </div>
  )
}
